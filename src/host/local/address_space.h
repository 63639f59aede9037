// AddressSpace: the mappings of this process, or of another one of its user, as the kernel reports
// them: by ioctl(PROCMAP_QUERY) of /proc/PID/maps, which answers for one address (Linux 6.11), or
// by that file's text before.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/types.h"
#include "host/os/descriptor.h"

namespace verbena::host {

struct MappedArea {  // one mapping; [begin, end)
  u64 begin = 0, end = 0;
  u64 offset = 0;             // of `begin` in the file
  u64 device = 0, inode = 0;  // the file, as in stat(2); inode 0: none
  bool is_readable = false, is_writable = false, is_executable = false, is_shared = false;
  std::string name;  // a path, or what the kernel calls it, "[heap]"
};

class AddressSpace {
 public:
  // kQuickly: no text, which takes as long as there are mappings.
  enum class Look { kQuickly, kThoroughly };
  explicit AddressSpace(Look look);
  AddressSpace(Look look, u32 pid);

  // Returns nullopt if nothing is mapped there, or if the kernel does not tell.
  [[nodiscard]] std::optional<MappedArea> at(u64 address) const;
  // The first that ends after the address.
  [[nodiscard]] std::optional<MappedArea> from(u64 address) const;
  // Returns whether all of [begin, end) is mapped and `is_right` holds for each area there, or
  // nullopt if the kernel does not tell.
  using IsRight = std::function<bool(const MappedArea&)>;
  [[nodiscard]] std::optional<bool> covers(u64 begin, u64 end, const IsRight& is_right) const;

 private:
  AddressSpace(Look look, std::string path);
  // Stores the area's name in `name`, as far as there is room.
  [[nodiscard]] std::optional<MappedArea> ask(u64 address, std::span<char> name) const;

  Look look_;
  std::string path_;
  Descriptor maps_;
};

// Parses a line of /proc/PID/maps, proc_pid_maps(5). Returns nullopt if it is none.
[[nodiscard]] std::optional<MappedArea> parse_mapped_area(const std::string& line);

}  // namespace verbena::host
