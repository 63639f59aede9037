#include "host/os/held_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace verbena::host {

Expected<HeldFile> HeldFile::hold(int fd) {
  Descriptor copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  struct stat status {};
  if (!copy.is_open() || ::fstat(copy.get(), &status) != 0)
    return failure(errno, std::string("not a file: ") + std::strerror(errno));
  return HeldFile(std::move(copy), {.device = status.st_dev, .number = status.st_ino});
}

}  // namespace verbena::host
