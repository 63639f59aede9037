// BlockStore: what a namespace's blocks are kept in. Requests are asynchronous: submit() starts
// one, poll() returns those that have ended, in any order. Memory ends at once; files are in
// nvmf_program/, a counted medium of the simulator in simulated_store.h.
#pragma once

#include <optional>

#include "application/node.h"
#include "wire/nvme/status.h"

namespace verbena::nvmf {

class BlockStore {
 public:
  enum class Kind : u8 { kRead, kWrite, kDurableWrite, kFlush, kWriteZeroes, kDeallocate };
  struct Request {
    Kind kind = Kind::kRead;
    u64 offset = 0, length = 0;
    u8* bytes = nullptr;  // kRead, kWrite: stays valid until the request has ended
    u64 tag = 0;
  };
  enum class Outcome : u8 { kDone, kFailed, kNoSpace };
  struct Done {
    u64 tag = 0;
    Outcome outcome = Outcome::kDone;
  };

  virtual ~BlockStore() = default;
  [[nodiscard]] virtual u64 bytes() const = 0;
  [[nodiscard]] virtual u8 block_log2() const = 0;
  [[nodiscard]] virtual bool has_write_cache() const = 0;  // Flush makes writes durable
  [[nodiscard]] virtual bool is_read_only() const = 0;
  // Registered memory that holds all blocks, for RDMA without a copy; nullopt: none.
  [[nodiscard]] virtual std::optional<application::Region> memory() const = 0;

  virtual void submit(const Request& request) = 0;
  [[nodiscard]] virtual bool poll(Done& out) = 0;  // false: none has ended
  virtual void flush_submissions() {}              // requests submitted since then may start
};

[[nodiscard]] constexpr nvme::Status status_of(BlockStore::Kind kind, BlockStore::Outcome outcome) {
  switch (outcome) {
    case BlockStore::Outcome::kDone: return nvme::Status::kSuccess;
    case BlockStore::Outcome::kNoSpace: return nvme::Status::kCapacityExceeded;
    case BlockStore::Outcome::kFailed:
      return kind == BlockStore::Kind::kRead ? nvme::Status::kUnrecoveredReadError
                                             : nvme::Status::kWriteFault;
  }
  return nvme::Status::kInternalError;
}

}  // namespace verbena::nvmf
