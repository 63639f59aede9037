// Files of sysfs, for librdmacm and for programs that read facts there that verbs do not report.
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <unistd.h>
#include "abi/ibverbs/exceptions.h"

#include <cerrno>
#include <cstdlib>
#include <string>

extern "C" {
const char* ibv_get_sysfs_path();
int ibv_read_sysfs_file(const char* directory, const char* file, char* buffer, std::size_t size);
}

namespace {

// $SYSFS_PATH without slashes at its end, except in a program with more rights than its user.
std::string find_sysfs() {
  const char* chosen = secure_getenv("SYSFS_PATH");
  if (chosen == nullptr) return "/sys";
  std::string path(chosen);
  path.erase(path.find_last_not_of('/') + 1);
  return path;
}

ssize_t read_file(const std::string& path, char* buffer, std::size_t size) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  const ssize_t length = read(fd, buffer, size);
  const int error = errno;
  close(fd);
  errno = error;
  return length;
}

}  // namespace

const char* ibv_get_sysfs_path() try {
  static const std::string& path = *new std::string(find_sysfs());
  return path.c_str();
} catch (...) {
  return verbena::abi::fail(verbena::abi::errno_of_exception());
}

// The length of the text, with a zero behind it instead of the newline at its end; -1: no such
// file, or no room for the zero.
int ibv_read_sysfs_file(const char* directory, const char* file, char* buffer,
                        std::size_t size) try {
  const ssize_t length = read_file(std::string(directory) + "/" + file, buffer, size);
  if (length <= 0) return static_cast<int>(length);
  const auto end = static_cast<std::size_t>(length);
  if (buffer[end - 1] == '\n') {
    buffer[end - 1] = '\0';
    return static_cast<int>(end - 1);
  }
  if (end == size) return -1;
  buffer[end] = '\0';
  return static_cast<int>(end);
} catch (...) {
  return verbena::abi::fail_with_minus_one(verbena::abi::errno_of_exception());
}
