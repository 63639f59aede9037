// MemoryStore: blocks in memory of the node. Hosts read and write them by RDMA without a copy.
#pragma once

#include <cstring>
#include <deque>

#include "nvmf/block_store.h"

namespace verbena::nvmf {

class MemoryStore final : public BlockStore {
 public:
  enum class Protection : u8 { kWritable, kReadOnly };

  MemoryStore(const application::Region& region, u8 block_log2,
              Protection protection = Protection::kWritable)
      : region_(region), block_log2_(block_log2), protection_(protection) {}

  [[nodiscard]] u64 bytes() const override { return region_.length; }
  [[nodiscard]] u8 block_log2() const override { return block_log2_; }
  [[nodiscard]] bool has_write_cache() const override { return false; }
  [[nodiscard]] bool is_read_only() const override { return protection_ == Protection::kReadOnly; }
  [[nodiscard]] std::optional<application::Region> memory() const override { return region_; }

  void submit(const Request& request) override {
    if (!region_.bytes.empty()) execute(request);
    done_.push_back({request.tag, Outcome::kDone});
  }
  [[nodiscard]] bool poll(Done& out) override {
    if (done_.empty()) return false;
    out = done_.front();
    done_.pop_front();
    return true;
  }

 private:
  void execute(const Request& request) {
    u8* const at = region_.bytes.data() + request.offset;
    switch (request.kind) {
      case Kind::kRead: std::memcpy(request.bytes, at, request.length); break;
      case Kind::kWrite:
      case Kind::kDurableWrite: std::memcpy(at, request.bytes, request.length); break;
      case Kind::kWriteZeroes:
      case Kind::kDeallocate: std::memset(at, 0, request.length); break;
      case Kind::kFlush: break;
    }
  }

  const application::Region region_;
  const u8 block_log2_;
  const Protection protection_;
  std::deque<Done> done_;
};

}  // namespace verbena::nvmf
