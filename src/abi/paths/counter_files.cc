#include "abi/paths/counter_files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "abi/paths/port_counter.h"

namespace verbena::abi::paths {
namespace {

constexpr int kNone = -1, kBusy = -2;
constexpr std::size_t kMaxOpen = 128;  // those beyond show what they were when opened

// The library does not see the program's close(2), nor the program the library's, so the file
// behind `fd` may be another one by now: it is ours only while its inode is the same.
struct Watched {
  std::atomic<int> fd{kNone};
  dev_t device = 0;
  ino_t inode = 0;
  PortCounter counter;
};
Watched watched[kMaxOpen];
std::atomic<bool> any_watched{false};

bool is_still(const Watched& entry, int fd) {
  struct stat now {};
  return ::fstat(fd, &now) == 0 && now.st_dev == entry.device && now.st_ino == entry.inode;
}

void write_value(int fd, const PortCounter& counter) {
  char text[24];
  char* const end = std::to_chars(text, text + sizeof(text) - 1, counter.value()).ptr;
  *end = '\n';
  const off_t size = end + 1 - text;
  if (::pwrite(fd, text, static_cast<std::size_t>(size), 0) == size) (void)!::ftruncate(fd, size);
}

// The file behind a descriptor once more, opened otherwise.
int reopen(int fd, int flags) {
  char link[32] = "/proc/self/fd/";
  *std::to_chars(link + std::strlen(link), link + sizeof(link) - 1, fd).ptr = '\0';
  return ::open(link, flags);
}

void watch(int fd, const PortCounter& counter) {
  struct stat now {};
  if (::fstat(fd, &now) != 0) return;
  for (Watched& entry : watched) {
    int before = entry.fd.load();
    if (before == kBusy || (before != kNone && before != fd && is_still(entry, before))) continue;
    if (!entry.fd.compare_exchange_strong(before, kBusy)) continue;
    entry.device = now.st_dev;
    entry.inode = now.st_ino;
    entry.counter = counter;
    entry.fd = fd;
    any_watched = true;
    return;
  }
}

}  // namespace

bool open_counter(const char* real_path, int flags, int& fd) {
  if ((flags & O_ACCMODE) != O_RDONLY || (flags & (O_DIRECTORY | O_PATH)) != 0) return false;
  const std::optional<PortCounter> counter = PortCounter::of(real_path);
  if (!counter) return false;
  const int memory = ::memfd_create("counter", MFD_CLOEXEC);
  if (memory < 0) return false;
  write_value(memory, *counter);
  fd = reopen(memory, O_RDONLY | (flags & O_CLOEXEC));
  const int error = errno;
  ::close(memory);
  if (fd >= 0) watch(fd, *counter);
  errno = error;
  return true;
}

void refresh_counter(int fd, off_t offset) {
  if (!any_watched.load(std::memory_order_relaxed) || fd < 0) return;
  const int before = errno;
  for (Watched& entry : watched) {
    if (entry.fd.load(std::memory_order_acquire) != fd || !is_still(entry, fd)) continue;
    if ((offset < 0 ? ::lseek(fd, 0, SEEK_CUR) : offset) != 0) break;
    const int writable = reopen(fd, O_RDWR | O_CLOEXEC);
    if (writable < 0) break;
    write_value(writable, entry.counter);
    ::close(writable);
    break;
  }
  errno = before;
}

}  // namespace verbena::abi::paths
