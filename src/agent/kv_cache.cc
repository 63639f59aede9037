#include "agent/kv_cache.h"

#include <algorithm>
#include <limits>

namespace verbena::agent {
namespace {

constexpr u64 kMaxCacheBlocks = u64{1} << 26;  // of the pool, which takes some 100 bytes for each

}  // namespace

Expected<transfer::KVLayout> kv_layout_of(const verbena_kv_layout& layout) {
  const bool is_possible = layout.order <= VERBENA_KV_LATENT && layout.layers > 0 &&
                           layout.blocks > 0 && layout.blocks <= kMaxCacheBlocks &&
                           layout.block_bytes > 0 &&
                           layout.block_bytes <= std::numeric_limits<u64>::max() / 2 /
                                                     (u64{layout.layers} * layout.blocks);
  if (!is_possible) return failure(VERBENA_TRANSFER_INVALID, "there is no such layout");
  return transfer::KVLayout{.order = static_cast<transfer::KVLayout::Order>(layout.order),
                            .layers = layout.layers,
                            .blocks = layout.blocks,
                            .block_bytes = layout.block_bytes};
}

Expected<std::shared_ptr<KVCache>> KVCache::make(Agent& agent, const verbena_kv_layout& layout,
                                                 void* memory) {
  constexpr unsigned kAll = VERBENA_REMOTE_READ | VERBENA_REMOTE_WRITE | VERBENA_LOCAL_WRITE;
  const auto checked = kv_layout_of(layout);
  if (!checked) return tl::unexpected(checked.error());
  const auto region = agent.add_region(memory, checked->bytes(), kAll);
  if (!region) return tl::unexpected(region.error());
  std::shared_ptr<KVCache> cache(new KVCache(agent, *checked));
  cache->place_ = {.layout = layout, .base = reinterpret_cast<u64>(memory), .region = *region};
  cache->requests_.resize(layout.blocks);
  return cache;
}

KVCache::~KVCache() { (void)agent_.remove_region(place_.region); }

Expected<transfer::BlockPool::Allocation> KVCache::allocate(std::span<const u64> hashes, u32 more) {
  const std::scoped_lock lock(lock_);
  auto allocation = pool_.allocate(hashes, more);
  if (!allocation)
    return failure(VERBENA_TRANSFER_NO_ROOM, std::to_string(pool_.used()) + " of " +
                                                 std::to_string(pool_.size()) +
                                                 " blocks are in use");
  for (const u32 block : allocation->blocks) ++requests_[block];
  return std::move(*allocation);
}

// A list may name a block as often as requests have it.
Expected<void> KVCache::check_held(std::span<const u32> blocks) const {
  std::vector<u32> sorted(blocks.begin(), blocks.end());
  std::ranges::sort(sorted);
  for (auto at = sorted.begin(); at != sorted.end();) {
    const auto next = std::upper_bound(at, sorted.end(), *at);
    if (*at >= requests_.size() || next - at > std::ptrdiff_t{requests_[*at]})
      return failure(VERBENA_TRANSFER_INVALID,
                     "no request has the block " + std::to_string(*at) + " of the cache");
    at = next;
  }
  return {};
}

Expected<void> KVCache::publish(std::span<const u32> blocks) {
  const std::scoped_lock lock(lock_);
  if (const auto held = check_held(blocks); !held) return held;
  pool_.publish(blocks);
  return {};
}

Expected<void> KVCache::release(std::span<const u32> blocks) {
  const std::scoped_lock lock(lock_);
  if (const auto held = check_held(blocks); !held) return held;
  for (const u32 block : blocks) --requests_[block];
  pool_.release(blocks);
  return {};
}

Expected<std::shared_ptr<void>> KVCache::keep(std::span<const u32> blocks) {
  const std::scoped_lock lock(lock_);
  if (const auto held = check_held(blocks); !held) return tl::unexpected(held.error());
  pool_.retain(blocks);
  auto* const kept = new std::vector<u32>(blocks.begin(), blocks.end());
  return std::shared_ptr<void>(kept, [cache = shared_from_this(), kept](void*) {
    const std::scoped_lock again(cache->lock_);
    cache->pool_.release(*kept);
    delete kept;
  });
}

verbena_kv_counters KVCache::count() {
  const std::scoped_lock lock(lock_);
  return {.size = sizeof(verbena_kv_counters),
          .used = pool_.used(),
          .cached = pool_.cached(),
          .evictions = pool_.evictions()};
}

std::vector<verbena_descriptor> kv_descriptors(const verbena_kv_place& place,
                                               std::span<const u32> blocks) {
  const transfer::KVLayout layout = *kv_layout_of(place.layout);
  std::vector<verbena_descriptor> list;
  list.reserve(u64{layout.layers} * layout.halves() * blocks.size());
  for (u32 layer = 0; layer < layout.layers; ++layer)
    for (u32 half = 0; half < layout.halves(); ++half)
      for (const u32 block : blocks)
        list.push_back({.address = place.base + layout.offset_of(layer, half, block),
                        .length = layout.block_bytes,
                        .region = place.region});
  return list;
}

}  // namespace verbena::agent
