#include "host/local/memory_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>

namespace verbena::host {
namespace {

constexpr u64 kPage = 4096;  // of any machine, or a part of it

std::string path_of(u32 pid) { return "/proc/" + std::to_string(pid) + "/mem"; }

}  // namespace

MemoryFile::MemoryFile(u32 pid) : file_(::open(path_of(pid).c_str(), O_RDWR | O_CLOEXEC)) {}

// The kernel's memcpy makes one store of so many octets; of two it may make two, the last first.
bool MemoryFile::suits_write(u64 to, u64 length) {
  return (length == 8 || length == 4 || length == 1) && to % length == 0;
}

bool MemoryFile::suits_read(u64 from, u64 length) { return from % kPage + length <= kPage; }

bool MemoryFile::write(u64 to, Bytes from) const {
  return ::pwrite(file_.get(), from.data(), from.size(), static_cast<off_t>(to)) ==
         static_cast<ssize_t>(from.size());
}

bool MemoryFile::read(u64 from, MutableBytes to) const {
  return ::pread(file_.get(), to.data(), to.size(), static_cast<off_t>(from)) ==
         static_cast<ssize_t>(to.size());
}

}  // namespace verbena::host
