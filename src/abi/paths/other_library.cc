#include "abi/paths/other_library.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>

namespace verbena::abi::paths {
namespace {

constexpr std::string_view kLibrary = "libibverbs.so.1", kOwn = "libverbena-paths.so";

// `first` <= size. Not substr(), which may throw: this library is loaded without the C++ runtime.
std::string_view from(std::string_view text, std::size_t first) {
  return {text.data() + first, text.size() - first};
}
std::string_view folder_of(std::string_view path) { return {path.data(), path.rfind('/') + 1}; }
std::string_view file_of(std::string_view path) { return from(path, path.rfind('/') + 1); }

// By system calls: the C library's functions are those that this library stands in front of.
void read_lines(LoadedLibraries& libraries) {
  const int fd =
      static_cast<int>(::syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC));
  if (fd < 0) return;
  static char text[2 * LoadedLibraries::kLongest];
  std::size_t kept = 0;
  for (;;) {
    const long n = ::syscall(SYS_read, fd, text + kept, sizeof text - kept);
    if (n <= 0) break;
    const std::string_view all(text, kept + static_cast<std::size_t>(n));
    std::size_t start = 0;
    for (std::size_t end; (end = all.find('\n', start)) != all.npos; start = end + 1)
      libraries.on_line({text + start, end - start});
    kept = all.size() - start;
    if (kept == sizeof text) break;  // no line is so long
    std::memmove(text, text + start, kept);
  }
  ::syscall(SYS_close, fd);
}

}  // namespace

void LoadedLibraries::Path::set(std::string_view path) {
  length = std::min(path.size(), sizeof text);
  std::memcpy(text, path.data(), length);
}

void LoadedLibraries::on_line(std::string_view line) {
  const std::size_t slash = line.find('/');
  if (slash == line.npos) return;
  const std::string_view path = from(line, slash), file = file_of(path);
  if (file == kOwn) return own_.set(path);
  if (!file.starts_with(kLibrary)) return;
  for (std::size_t i = 0; i < count_; ++i)
    if (found_[i].view() == path) return;
  if (count_ != kMost) found_[count_++].set(path);
}

std::string_view LoadedLibraries::other() const {
  std::string_view other;
  for (std::size_t i = 0; i < count_; ++i) {
    if (folder_of(found_[i].view()) == folder_of(own_.view())) return {};
    other = found_[i].view();
  }
  return own_.length == 0 ? std::string_view() : other;
}

void warn_of_other_library() {
  static std::atomic<bool> looked{false};
  if (looked.exchange(true)) return;
  static constinit LoadedLibraries libraries;
  read_lines(libraries);
  const std::string_view other = libraries.other();
  if (other.empty()) return;
  char text[LoadedLibraries::kLongest + 512];
  const int length = std::snprintf(
      text, sizeof text,
      "verbena: this program has loaded %.*s and not Verbena's libibverbs, so it finds no device. "
      "The cause is an RPATH in the program or in one of its libraries (readelf -d shows it; "
      "RUNPATH does no harm), or that it opens the library by its absolute name.\n",
      static_cast<int>(other.size()), other.data());
  if (length > 0)
    ::syscall(SYS_write, STDERR_FILENO, text,
              std::min(static_cast<std::size_t>(length), sizeof text - 1));
}

}  // namespace verbena::abi::paths
