#include "abi/paths/tree.h"

#include <algorithm>
#include <cstring>

namespace verbena::abi::paths {
namespace {

// The last word of the second and third may go on: infiniband_verbs, infiniband_mad, ...
struct Root {
  std::string_view folder, last;
  bool may_go_on;
};
constexpr Root kRoots[] = {{"/dev", "infiniband", false},
                           {"/sys/class", "infiniband", true},
                           {"/sys/devices/virtual", "infiniband", true}};

// The components of a path, one after the other, without the empty ones and ".".
class Components {
 public:
  explicit Components(std::string_view path) : rest_(path) {}

  // Empty: there are no more.
  std::string_view next() {
    while (true) {
      rest_.remove_prefix(std::min(rest_.find_first_not_of('/'), rest_.size()));
      const std::string_view component = rest_.substr(0, rest_.find('/'));
      rest_.remove_prefix(component.size());
      if (component != ".") return component;
    }
  }

 private:
  std::string_view rest_;
};

bool is_below(const Root& root, std::string_view path) {
  Components components(path), wanted(root.folder);
  for (std::string_view want = wanted.next(); !want.empty(); want = wanted.next())
    if (components.next() != want) return false;
  const std::string_view last = components.next();
  return root.may_go_on ? last.starts_with(root.last) : last == root.last;
}

}  // namespace

bool Tree::holds(std::string_view path) {
  return path.starts_with('/') &&
         std::any_of(std::begin(kRoots), std::end(kRoots),
                     [path](const Root& root) { return is_below(root, path); });
}

bool Tree::real_name(std::string_view path, char* out, std::size_t size) const {
  if (folder_.empty() || !holds(path) || folder_.size() + path.size() >= size) return false;
  std::memcpy(out, folder_.data(), folder_.size());
  std::memcpy(out + folder_.size(), path.data(), path.size());
  out[folder_.size() + path.size()] = '\0';
  return true;
}

std::string_view Tree::known_name(std::string_view real_name) const {
  if (folder_.empty() || !real_name.starts_with(folder_)) return {};
  const std::string_view known = real_name.substr(folder_.size());
  return known.starts_with('/') ? known : std::string_view();
}

}  // namespace verbena::abi::paths
