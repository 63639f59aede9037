#include "nvmf_program/file_store.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>

namespace verbena::nvmf_program {
namespace {

constexpr u64 kZeroBytes = 1 << 16;
constexpr std::size_t kDirectAlignment = 4096;

// Requests end in submit().
class BlockingStore final : public FileStore {
 public:
  explicit BlockingStore(int fd) : FileStore(fd) {}
  [[nodiscard]] std::string_view method() const override { return "blocking calls"; }
  void submit(const Request& request) override { done_.push_back({request.tag, execute(request)}); }
  [[nodiscard]] bool poll(Done& out) override {
    if (done_.empty()) return false;
    out = done_.front();
    done_.pop_front();
    return true;
  }

 private:
  std::deque<Done> done_;
};

tl::unexpected<std::string> file_error(const std::string& file) {
  return tl::unexpected(file + ": " + std::strerror(errno));
}

// Whether a read of one block works: O_DIRECT is refused by open() or by the first read.
bool reads_blocks(int fd, std::size_t block) {
  void* const buffer = std::aligned_alloc(kDirectAlignment, kDirectAlignment);
  if (buffer == nullptr) return false;
  const ssize_t bytes = pread(fd, buffer, block, 0);
  std::free(buffer);
  return bytes >= 0;
}

int open_direct(const std::string& file, int access, std::size_t block) {
  const int fd = ::open(file.c_str(), access | O_CLOEXEC | O_DIRECT);
  if (fd < 0 || reads_blocks(fd, block)) return fd;
  close(fd);
  errno = EINVAL;
  return -1;
}

std::optional<u64> size_of(int fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return std::nullopt;
  if (S_ISREG(status.st_mode)) return static_cast<u64>(status.st_size);
  u64 bytes = 0;
  if (S_ISBLK(status.st_mode) && ioctl(fd, BLKGETSIZE64, &bytes) == 0) return bytes;
  errno = S_ISBLK(status.st_mode) ? errno : EINVAL;
  return std::nullopt;
}

}  // namespace

FileStore::~FileStore() { close(fd_); }

Expected<std::unique_ptr<FileStore>> FileStore::open(const NamespaceOptions& options) {
  const int access = options.is_read_only ? O_RDONLY : O_RDWR;
  const std::size_t block = std::size_t{1} << options.block_log2;
  int fd = -1;
  if (options.direct != Direct::kOff) fd = open_direct(options.file, access, block);
  const bool is_direct = fd >= 0;
  if (fd < 0 && options.direct == Direct::kOn) return file_error(options.file + ", O_DIRECT");
  if (fd < 0) fd = ::open(options.file.c_str(), access | O_CLOEXEC);
  if (fd < 0) return file_error(options.file);
  const std::optional<u64> bytes = size_of(fd);
  if (!bytes || *bytes < block) {
    const int error = bytes ? 0 : errno;
    close(fd);
    return tl::unexpected(options.file + ": " +
                          (bytes             ? "is smaller than a block"
                           : error == EINVAL ? "is neither a regular file nor a block device"
                                             : std::strerror(error)));
  }
  std::unique_ptr<FileStore> store = make_uring_store(fd);
  if (store == nullptr) store = std::make_unique<BlockingStore>(fd);
  store->bytes_ = *bytes & ~u64{block - 1};
  store->block_log2_ = options.block_log2;
  store->is_read_only_ = options.is_read_only;
  store->is_direct_ = is_direct;
  return store;
}

FileStore::Outcome FileStore::outcome_of(int error) {
  return error == ENOSPC || error == EDQUOT || error == EFBIG ? Outcome::kNoSpace
                                                              : Outcome::kFailed;
}

// A read at the end of a file that has become shorter is an error.
FileStore::Outcome FileStore::transfer(const Request& request) const {
  for (u64 done = 0; done < request.length;) {
    const iovec vector{request.bytes + done, request.length - done};
    const auto at = static_cast<off_t>(request.offset + done);
    const ssize_t bytes =
        request.kind == Kind::kRead
            ? preadv2(fd_, &vector, 1, at, 0)
            : pwritev2(fd_, &vector, 1, at, request.kind == Kind::kDurableWrite ? RWF_DSYNC : 0);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return outcome_of(errno);
    if (bytes == 0) return Outcome::kFailed;
    done += static_cast<u64>(bytes);
  }
  return Outcome::kDone;
}

FileStore::Outcome FileStore::write_zeros(u64 offset, u64 bytes) const {
  void* const zeros = std::aligned_alloc(kDirectAlignment, kZeroBytes);
  if (zeros == nullptr) return Outcome::kFailed;
  std::memset(zeros, 0, kZeroBytes);
  Outcome outcome = Outcome::kDone;
  while (bytes > 0 && outcome == Outcome::kDone) {
    const u64 part = std::min(bytes, kZeroBytes);
    outcome = transfer(
        {.kind = Kind::kWrite, .offset = offset, .length = part, .bytes = static_cast<u8*>(zeros)});
    offset += part;
    bytes -= part;
  }
  std::free(zeros);
  return outcome;
}

FileStore::Outcome FileStore::zero(const Request& request) const {
  const int mode = request.kind == Kind::kDeallocate ? FALLOC_FL_PUNCH_HOLE : FALLOC_FL_ZERO_RANGE;
  if (fallocate(fd_, mode | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(request.offset),
                static_cast<off_t>(request.length)) == 0)
    return Outcome::kDone;
  const bool is_missing = errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL;
  return is_missing ? write_zeros(request.offset, request.length) : outcome_of(errno);
}

FileStore::Outcome FileStore::execute(const Request& request) const {
  switch (request.kind) {
    case Kind::kRead:
    case Kind::kWrite:
    case Kind::kDurableWrite: return transfer(request);
    case Kind::kFlush: return fdatasync(fd_) == 0 ? Outcome::kDone : outcome_of(errno);
    case Kind::kWriteZeroes:
    case Kind::kDeallocate: return zero(request);
  }
  return Outcome::kFailed;
}

}  // namespace verbena::nvmf_program
