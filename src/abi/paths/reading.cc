// read(2) and its relatives, for the sake of counters that are read again and again.
#include <unistd.h>

#include "abi/paths/counter_files.h"
#include "abi/paths/next.h"

namespace verbena::abi::paths {
namespace {

using Read = ssize_t(int, void*, size_t);
using CheckedRead = ssize_t(int, void*, size_t, size_t);
using ReadAt = ssize_t(int, void*, size_t, off_t);

constinit Next<Read> next_read{"read"};
constinit Next<CheckedRead> next_read_chk{"__read_chk"};
constinit Next<ReadAt> next_pread{"pread"}, next_pread64{"pread64"};

[[gnu::constructor]] void find_reading_functions() {
  next_read.find();
  next_read_chk.find();
  next_pread.find();
  next_pread64.find();
}

}  // namespace
}  // namespace verbena::abi::paths

using namespace verbena::abi::paths;

extern "C" {

ssize_t read(int fd, void* to, size_t size) {
  refresh_counter(fd, -1);
  return next_read(fd, to, size);
}
ssize_t __read_chk(int fd, void* to, size_t size, size_t room) {
  refresh_counter(fd, -1);
  return next_read_chk(fd, to, size, room);
}
ssize_t pread(int fd, void* to, size_t size, off_t offset) {
  refresh_counter(fd, offset);
  return next_pread(fd, to, size, offset);
}
ssize_t pread64(int fd, void* to, size_t size, off_t offset) {
  refresh_counter(fd, offset);
  return next_pread64(fd, to, size, offset);
}

}  // extern "C"
