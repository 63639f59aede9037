// Tree: where the files of our devices lie that a kernel shows of its own: /dev/infiniband,
// /sys/class/infiniband and its relatives. `verbena run` writes them into a folder of its own,
// under the paths that programs know: FOLDER/sys/class/infiniband/verbena0/...
//
// Pure text: no file is looked at. Nothing is allocated, so that it may run in any program at any
// time.
#pragma once

#include <cstddef>
#include <string_view>

namespace verbena::abi::paths {

// The folder's name is in this variable of the environment; without it nothing is redirected.
inline constexpr const char* kTreeVariable = "VERBENA_FILES";

// In every path that is redirected, so what lacks it is passed on at once.
inline constexpr const char* kMark = "infiniband";

class Tree {
 public:
  constexpr Tree() = default;  // redirects nothing
  // `folder`: absolute, without a slash at its end; it must outlive this.
  constexpr explicit Tree(std::string_view folder) : folder_(folder) {}

  [[nodiscard]] constexpr bool is_empty() const { return folder_.empty(); }

  // Whether an absolute path lies in the tree: it may have "//" and "/./", but ".." is not
  // resolved.
  [[nodiscard]] static bool holds(std::string_view path);

  // Writes the name that the file really has, with a zero behind it. False: `path` is not in the
  // tree, or there is no room.
  [[nodiscard]] bool real_name(std::string_view path, char* out, std::size_t size) const;

  // The other way: the part of a real name that programs know. Empty: it is not in the folder.
  [[nodiscard]] std::string_view known_name(std::string_view real_name) const;

 private:
  std::string_view folder_;
};

}  // namespace verbena::abi::paths
