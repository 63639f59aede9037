// FileStore: blocks in a regular file or on a block device. Requests go through io_uring where the
// build has liburing and the kernel allows it, else by blocking calls in submit().
//
// O_DIRECT is used where the file system and the block size allow it. A Flush is fdatasync(2).
// Deallocate punches holes; a file system without them gets zeros.
#pragma once

#include <memory>

#include "nvmf/block_store.h"
#include "nvmf_program/options.h"

namespace verbena::nvmf_program {

class FileStore : public nvmf::BlockStore {
 public:
  [[nodiscard]] static Expected<std::unique_ptr<FileStore>> open(const NamespaceOptions& options);
  ~FileStore() override;
  FileStore(const FileStore&) = delete;
  FileStore& operator=(const FileStore&) = delete;

  [[nodiscard]] u64 bytes() const override { return bytes_; }
  [[nodiscard]] u8 block_log2() const override { return block_log2_; }
  [[nodiscard]] bool has_write_cache() const override { return true; }
  [[nodiscard]] bool is_read_only() const override { return is_read_only_; }
  [[nodiscard]] std::optional<application::Region> memory() const override { return std::nullopt; }

  // Readable when requests have ended; -1: they end in submit().
  [[nodiscard]] virtual int descriptor() const { return -1; }
  [[nodiscard]] virtual std::string_view method() const = 0;
  [[nodiscard]] bool is_direct() const { return is_direct_; }

 protected:
  explicit FileStore(int fd) : fd_(fd) {}
  // The requests that io_uring lacks, or that have failed as "not supported" there.
  [[nodiscard]] Outcome execute(const Request& request) const;
  [[nodiscard]] static Outcome outcome_of(int error);

  const int fd_;

 private:
  [[nodiscard]] Outcome transfer(const Request& request) const;
  [[nodiscard]] Outcome zero(const Request& request) const;
  [[nodiscard]] Outcome write_zeros(u64 offset, u64 bytes) const;

  u64 bytes_ = 0;
  u8 block_log2_ = 9;
  bool is_read_only_ = false, is_direct_ = false;
};

// nullptr: the build lacks liburing, or the kernel refuses. In uring_store.cc.
[[nodiscard]] std::unique_ptr<FileStore> make_uring_store(int fd);

}  // namespace verbena::nvmf_program
