#include "models/mapped_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "models/handles.h"

namespace verbena::models {
namespace {

tl::unexpected<std::string> file_error(const std::string& path, int error) {
  return tl::unexpected(path + ": " + std::strerror(error));
}

u64 nanoseconds(const timespec& time) {
  return static_cast<u64>(time.tv_sec) * 1'000'000'000 + static_cast<u64>(time.tv_nsec);
}

}  // namespace

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(had_bytes_, other.had_bytes_);
  std::swap(path_, other.path_);
  std::swap(part_path_, other.part_path_);
  std::swap(status_, other.status_);
  std::swap(is_source_, other.is_source_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(data_, bytes_);
  if (file_ >= 0) close(file_);
}

Expected<void> MappedFile::map(int protection) {
  if (bytes_ == 0) return {};
  const int flags = file_ >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
  void* const at = mmap(nullptr, bytes_, protection, flags, file_, 0);
  if (at == MAP_FAILED) return file_error(path_, errno);
  data_ = static_cast<u8*>(at);
  return {};
}

Expected<MappedFile> MappedFile::open_source(const std::string& path) {
  MappedFile file;
  file.path_ = path;
  file.is_source_ = true;
  file.file_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file.file_ < 0 || fstat(file.file_, &file.status_) != 0) return file_error(path, errno);
  if (!S_ISREG(file.status_.st_mode)) return tl::unexpected(path + ": not a regular file");
  file.bytes_ = static_cast<u64>(file.status_.st_size);
  if (const auto mapped = file.map(PROT_READ); !mapped) return tl::unexpected(mapped.error());
  return file;
}

Expected<MappedFile> MappedFile::make_target(const std::string& path, u64 bytes) {
  MappedFile file;
  file.path_ = path;
  file.part_path_ = part_path(path);
  file.bytes_ = bytes;
  struct stat existing {};
  if (stat(path.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode))
    return tl::unexpected(path + ": it is there, and is no regular file");
  file.file_ = open(file.part_path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file.file_ < 0) return file_error(file.part_path_, errno);
  if (flock(file.file_, LOCK_EX | LOCK_NB) != 0)
    return tl::unexpected(file.part_path_ + ": another process writes to it");
  struct stat status {};
  if (fstat(file.file_, &status) != 0) return file_error(file.part_path_, errno);
  file.had_bytes_ = static_cast<u64>(status.st_size);
  if (ftruncate(file.file_, static_cast<off_t>(bytes)) != 0)
    return file_error(file.part_path_, errno);
  if (const auto mapped = file.map(PROT_READ); !mapped) return tl::unexpected(mapped.error());
  return file;
}

Expected<MappedFile> MappedFile::make_memory(u64 bytes) {
  MappedFile file;
  file.path_ = "memory";
  file.bytes_ = bytes;
  if (const auto mapped = file.map(PROT_READ | PROT_WRITE); !mapped)
    return tl::unexpected(mapped.error());
  if (bytes != 0) madvise(file.data_, bytes, MADV_HUGEPAGE);
  return file;
}

std::string MappedFile::no_room() const {
  struct statvfs room {};
  const bool is_known = fstatvfs(file_, &room) == 0;
  return path_ + ": no room for " + size_text(bytes_) +
         (is_known ? ": " + size_text(u64{room.f_bavail} * room.f_frsize) + " are free" : "");
}

std::string MappedFile::write_failure(int error) const {
  return error == ENOSPC || error == EDQUOT ? no_room() : path_ + ": " + std::strerror(error);
}

int MappedFile::write_at(u64 offset, std::span<const u8> from) const {
  while (!from.empty()) {
    const ssize_t wrote = pwrite(file_, from.data(), from.size(), static_cast<off_t>(offset));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return wrote < 0 ? errno : ENOSPC;
    from = from.subspan(static_cast<std::size_t>(wrote));
    offset += static_cast<u64>(wrote);
  }
  return 0;
}

bool MappedFile::read_at(u64 offset, std::span<u8> to) const {
  while (!to.empty()) {
    const ssize_t got = pread(file_, to.data(), to.size(), static_cast<off_t>(offset));
    if (got <= 0) return false;
    to = to.subspan(static_cast<std::size_t>(got));
    offset += static_cast<u64>(got);
  }
  return true;
}

FileIdentity MappedFile::identity() const {
  return {.inode = status_.st_ino,
          .bytes = bytes_,
          .modified_ns = nanoseconds(status_.st_mtim),
          .changed_ns = nanoseconds(status_.st_ctim)};
}

bool MappedFile::has_changed() const {
  if (!is_source_) return false;
  struct stat now {};
  return fstat(file_, &now) != 0 || now.st_size != status_.st_size ||
         now.st_mtim.tv_sec != status_.st_mtim.tv_sec ||
         now.st_mtim.tv_nsec != status_.st_mtim.tv_nsec;
}

Expected<void> MappedFile::complete() {
  if (part_path_.empty()) return {};
  if (fdatasync(file_) != 0) return file_error(part_path_, errno);
  if (rename(part_path_.c_str(), path_.c_str()) != 0) return file_error(path_, errno);
  part_path_.clear();
  return {};
}

}  // namespace verbena::models
