// BlockPool: the blocks of one paged KV cache. Requests share the blocks of equal prefixes: a block
// has the hash of all tokens up to its end. A block that no request uses keeps its contents until
// it is evicted, the one first that was not used for the longest time.
//
// A block takes part in transfers only while a request holds it, so that none is evicted under one.
#pragma once

#include <list>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/types.h"

namespace verbena::transfer {

class BlockPool {
 public:
  explicit BlockPool(u32 blocks);

  struct Allocation {
    std::vector<u32> blocks{};  // the request's block table
    u32 reused = 0;             // so many of the first have their contents already
  };
  // A block for each hash of the prompt, and `more` without one. nullopt if there is no room even
  // when all unused blocks are evicted; nothing is changed then.
  [[nodiscard]] std::optional<Allocation> allocate(std::span<const u64> hashes, u32 more);
  // The contents are there: later requests may share them. Before that, a block with a hash belongs
  // to its request alone.
  void publish(std::span<const u32> blocks);
  // A further user of blocks in use, a transfer for instance, which releases them, too.
  void retain(std::span<const u32> blocks);
  // The request is done, or cancelled. Blocks that are not published are free at once.
  void release(std::span<const u32> blocks);

  [[nodiscard]] u32 size() const { return static_cast<u32>(blocks_.size()); }
  [[nodiscard]] u32 used() const { return used_; }
  [[nodiscard]] u32 cached() const { return static_cast<u32>(unused_.size()); }
  [[nodiscard]] u64 evictions() const { return evictions_; }
  // Returns how many of the first hashes are published here.
  [[nodiscard]] u32 count_hits(std::span<const u64> hashes) const;

 private:
  struct Entry {
    u32 users = 0;
    std::optional<u64> hash{};
    bool is_published = false;
    std::list<u32>::iterator place{};  // in unused_, if published and without users
  };
  [[nodiscard]] u32 take_block();
  void hold(u32 block);

  std::vector<Entry> blocks_;
  std::vector<u32> free_{};
  std::list<u32> unused_{};  // published, without users; the oldest first
  std::unordered_map<u64, u32> by_hash_{};
  u32 used_ = 0;
  u64 evictions_ = 0;
};

}  // namespace verbena::transfer
