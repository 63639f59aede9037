#include "host/os/mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace verbena::host {
namespace {

tl::unexpected<Error> mapping_failure(const char* what) {
  const int error = errno;
  return failure(error, std::string(what) + ": " + std::strerror(error));
}

// A dma-buf tells its size by lseek only, and maps no more than it has.
bool is_short(int fd, u64 end) {
  struct stat file {};
  return ::fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && static_cast<u64>(file.st_size) < end;
}

}  // namespace

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  if (this == &other) return *this;
  reset();
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  offset_in_page_ = std::exchange(other.offset_in_page_, 0);
  file_ = std::move(other.file_);
  return *this;
}

void Mapping::reset() {
  if (data_ != nullptr) ::munmap(data_ - offset_in_page_, size_ + offset_in_page_);
  data_ = nullptr;
}

Expected<Mapping> Mapping::create(std::size_t length) {
  Descriptor file(::memfd_create("verbena", MFD_CLOEXEC));
  if (!file.is_open()) return mapping_failure("memfd_create");
  if (::ftruncate(file.get(), static_cast<off_t>(length)) != 0) return mapping_failure("ftruncate");
  Expected<Mapping> mapping = of_file(file.get(), 0, length, MapAccess::kReadWrite);
  if (mapping) mapping->file_ = std::move(file);
  return mapping;
}

Expected<Mapping> Mapping::of_file(int fd, u64 offset, std::size_t length, MapAccess access) {
  if (::fcntl(fd, F_GETFD) < 0) return failure(errno, "no open descriptor");  // before its range
  const auto page = static_cast<u64>(::sysconf(_SC_PAGESIZE));
  const std::size_t in_page = offset % page;
  if (length == 0 || offset + length < offset || is_short(fd, offset + length))
    return failure(EINVAL, "not a range of this file");
  const int protection = access == MapAccess::kReadWrite ? PROT_READ | PROT_WRITE : PROT_READ;
  void* const at = ::mmap(nullptr, length + in_page, protection, MAP_SHARED, fd,
                          static_cast<off_t>(offset - in_page));
  if (at == MAP_FAILED) return mapping_failure("mmap");
  Mapping mapping;
  mapping.data_ = static_cast<u8*>(at) + in_page;
  mapping.size_ = length;
  mapping.offset_in_page_ = in_page;
  return mapping;
}

int Mapping::export_fd() const { return ::fcntl(file_.get(), F_DUPFD_CLOEXEC, 0); }

}  // namespace verbena::host
