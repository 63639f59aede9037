#include "transfer/block_pool.h"

#include "base/check.h"

namespace verbena::transfer {

BlockPool::BlockPool(u32 blocks) : blocks_(blocks) {
  for (u32 block = blocks; block > 0; --block) free_.push_back(block - 1);
}

u32 BlockPool::count_hits(std::span<const u64> hashes) const {
  u32 hits = 0;
  for (const u64 hash : hashes) {
    if (!by_hash_.contains(hash)) break;
    ++hits;
  }
  return hits;
}

void BlockPool::hold(u32 block) {
  Entry& entry = blocks_[block];
  if (entry.users++ != 0) return;
  ++used_;
  if (entry.is_published) unused_.erase(entry.place);
}

u32 BlockPool::take_block() {
  if (!free_.empty()) {
    const u32 block = free_.back();
    free_.pop_back();
    return block;
  }
  CHECK(!unused_.empty());
  const u32 block = unused_.front();
  unused_.pop_front();
  by_hash_.erase(*blocks_[block].hash);
  blocks_[block] = {};
  ++evictions_;
  return block;
}

std::optional<BlockPool::Allocation> BlockPool::allocate(std::span<const u64> hashes, u32 more) {
  Allocation allocation{.reused = count_hits(hashes)};
  u32 idle_hits = 0;  // they are held first, and cannot be evicted then
  for (const u64 hash : hashes.first(allocation.reused))
    if (blocks_[by_hash_.at(hash)].users == 0) ++idle_hits;
  const u64 wanted = hashes.size() - allocation.reused + u64{more};
  if (wanted + idle_hits > free_.size() + unused_.size()) return std::nullopt;
  for (const u64 hash : hashes.first(allocation.reused)) {
    const u32 block = by_hash_.at(hash);
    hold(block);
    allocation.blocks.push_back(block);
  }
  for (u64 i = 0; i < wanted; ++i) {
    const u32 block = take_block();
    if (allocation.reused + i < hashes.size()) blocks_[block].hash = hashes[allocation.reused + i];
    hold(block);
    allocation.blocks.push_back(block);
  }
  return allocation;
}

// If two requests computed the same block, the block of the first request is shared.
void BlockPool::publish(std::span<const u32> blocks) {
  for (const u32 block : blocks) {
    Entry& entry = blocks_[block];
    CHECK(entry.users > 0);
    if (!entry.hash || entry.is_published) continue;
    entry.is_published = by_hash_.try_emplace(*entry.hash, block).second;
  }
}

void BlockPool::retain(std::span<const u32> blocks) {
  for (const u32 block : blocks) {
    CHECK(blocks_[block].users > 0);
    hold(block);
  }
}

void BlockPool::release(std::span<const u32> blocks) {
  for (const u32 block : blocks) {
    Entry& entry = blocks_[block];
    CHECK(entry.users > 0);
    if (--entry.users != 0) continue;
    --used_;
    if (entry.is_published) {
      entry.place = unused_.insert(unused_.end(), block);
    } else {
      entry = {};
      free_.push_back(block);
    }
  }
}

}  // namespace verbena::transfer
