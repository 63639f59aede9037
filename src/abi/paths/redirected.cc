#include "abi/paths/redirected.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "abi/paths/other_library.h"

namespace verbena::abi::paths {
namespace {

// Where rdma-core's libibverbs looks for devices, and ours does not.
constexpr std::string_view kDevicesOfVerbs = "/sys/class/infiniband_verbs";

char folder[PATH_MAX];
Tree own_tree;
bool is_known = false;

// Called when the library is loaded; earlier where another library's constructor opens a file.
// There is one thread then.
[[gnu::constructor]] void read_environment() {
  is_known = true;
  const char* const value = secure_getenv(kTreeVariable);
  if (value == nullptr || *value != '/' || std::strlen(value) >= sizeof(folder)) return;
  std::strcpy(folder, value);
  own_tree = Tree(folder);
}

// The absolute name of an open folder, with a slash behind it. Its length; 0: not known.
std::size_t name_of(int fd, char* out, std::size_t size) {
  char link[32] = "/proc/self/fd/";
  if (fd == AT_FDCWD)
    std::strcpy(link, "/proc/self/cwd");
  else
    *std::to_chars(link + std::strlen(link), link + sizeof(link) - 1, fd).ptr = '\0';
  const ssize_t length = ::readlinkat(AT_FDCWD, link, out, size - 1);
  if (length <= 0 || out[0] != '/') return 0;
  out[length] = '/';
  return static_cast<std::size_t>(length) + 1;
}

// The absolute form of a relative path. Empty: not known, or too long.
std::string_view absolute(int fd, std::string_view path, char* out, std::size_t size) {
  const std::size_t length = name_of(fd, out, size);
  if (length == 0 || length + path.size() > size) return {};
  std::memcpy(out + length, path.data(), path.size());
  return {out, length + path.size()};
}

}  // namespace

const Tree& tree() {
  if (!is_known) read_environment();
  return own_tree;
}

Redirected::Redirected(const char* path) : Redirected(AT_FDCWD, path) {}

Redirected::Redirected(int fd, const char* path) : path_(path) {
  if (path == nullptr || std::strstr(path, kMark) == nullptr) return;
  const int before = errno;
  char joined[PATH_MAX];
  const std::string_view wanted =
      path[0] == '/' ? std::string_view(path) : absolute(fd, path, joined, sizeof(joined));
  if (tree().real_name(wanted, buffer_, sizeof(buffer_))) {
    path_ = buffer_;
    if (wanted.starts_with(kDevicesOfVerbs)) warn_of_other_library();
  }
  errno = before;
}

void restore(char* text) {
  const std::string_view known = tree().known_name(text);
  if (!known.empty()) std::memmove(text, known.data(), known.size() + 1);
}

}  // namespace verbena::abi::paths
