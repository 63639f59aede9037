// The C functions of verbena/kv_cache.h: they check arguments, and translate.
#include <verbena/kv_cache.h>

#include <algorithm>

#include "agent/api_result.h"
#include "agent/kv_cache.h"

struct verbena_kv_cache {
  verbena_agent* agent = nullptr;
  std::shared_ptr<verbena::agent::KVCache> cache;
};

namespace verbena::agent {
namespace {

bool is_list(const void* list, size_t count) { return list != nullptr || count == 0; }

// Why no transfer can be between these; "": it can.
const char* mismatch(const transfer::KVLayout& here, const transfer::KVLayout& there) {
  if (here.layers != there.layers) return "the caches differ in their number of layers";
  if (here.block_bytes != there.block_bytes) return "the caches differ in the size of a block";
  if (here.halves() != there.halves()) return "one of the caches has K and V in one";
  return "";
}

}  // namespace
}  // namespace verbena::agent

using namespace verbena::agent;  // NOLINT: the functions of the header are global

int verbena_kv_cache_create(verbena_kv_cache** cache, verbena_agent* agent,
                            const verbena_kv_layout* layout, void* memory) {
  if (cache == nullptr || agent == nullptr || layout == nullptr || memory == nullptr)
    return invalid("cache, agent, layout or memory is NULL");
  *cache = nullptr;
  auto made = KVCache::make(*agent->agent, *layout, memory);
  if (!made) return told(made.error());
  *cache = new verbena_kv_cache{agent, std::move(*made)};
  return told(VERBENA_TRANSFER_OK, "");
}

void verbena_kv_cache_destroy(verbena_kv_cache* cache) { delete cache; }

int verbena_kv_cache_place(const verbena_kv_cache* cache, verbena_kv_place* place) {
  if (cache == nullptr || place == nullptr) return invalid("cache or place is NULL");
  *place = cache->cache->place();
  return told(VERBENA_TRANSFER_OK, "");
}

int verbena_kv_allocate(verbena_kv_cache* cache, const uint64_t* hashes, size_t hash_count,
                        size_t more, uint32_t* blocks, size_t* reused) {
  if (cache == nullptr || !is_list(hashes, hash_count) || !is_list(blocks, hash_count + more))
    return invalid("cache, hashes or blocks is NULL");
  const size_t all = cache->cache->place().layout.blocks;
  if (hash_count > all || more > all - hash_count)
    return told(VERBENA_TRANSFER_NO_ROOM, "the cache has " + std::to_string(all) + " blocks");
  const auto made = cache->cache->allocate({hashes, hash_count}, static_cast<verbena::u32>(more));
  if (!made) return told(made.error());
  std::ranges::copy(made->blocks, blocks);
  if (reused != nullptr) *reused = made->reused;
  return told(VERBENA_TRANSFER_OK, "");
}

int verbena_kv_publish(verbena_kv_cache* cache, const uint32_t* blocks, size_t count) {
  if (cache == nullptr || !is_list(blocks, count)) return invalid("cache or blocks is NULL");
  return result(cache->cache->publish({blocks, count}));
}

int verbena_kv_release(verbena_kv_cache* cache, const uint32_t* blocks, size_t count) {
  if (cache == nullptr || !is_list(blocks, count)) return invalid("cache or blocks is NULL");
  return result(cache->cache->release({blocks, count}));
}

int verbena_kv_transfer_create(verbena_kv_cache* cache, verbena_transfer_op op,
                               const uint32_t* blocks, size_t count, const verbena_kv_place* remote,
                               const uint32_t* remote_blocks, const char* peer,
                               const verbena_transfer_options* options,
                               verbena_transfer** transfer) {
  if (cache == nullptr || remote == nullptr || transfer == nullptr || !is_list(blocks, count) ||
      !is_list(remote_blocks, count))
    return invalid("cache, blocks, remote or transfer is NULL");
  *transfer = nullptr;
  if (!has_size(options)) return invalid("options->size is wrong");
  const auto there = kv_layout_of(remote->layout);
  if (!there) return told(there.error());
  const verbena_kv_place& here = cache->cache->place();
  const auto own = kv_layout_of(here.layout);
  if (const char* const why = mismatch(*own, *there); *why != 0) return invalid(why);
  if (std::any_of(remote_blocks, remote_blocks + count,
                  [&](verbena::u32 block) { return block >= there->blocks; }))
    return invalid("the remote cache has no such block");
  auto kept = cache->cache->keep({blocks, count});
  if (!kept) return told(kept.error());
  const auto local = kv_descriptors(here, {blocks, count});
  const auto far = kv_descriptors(*remote, {remote_blocks, count});
  verbena_transfer_options staged = copy_of(options);
  staged.size = sizeof staged;
  staged.staged = 1;
  const int made = verbena_transfer_create(cache->agent, op, local.data(), local.size(), far.data(),
                                           far.size(), peer, &staged, transfer);
  if (made != VERBENA_TRANSFER_OK) return made;
  (*transfer)->kept = std::move(*kept);
  (*transfer)->layer_blocks = count * own->halves();
  return made;
}

int verbena_kv_layers_ready(verbena_transfer* transfer, uint32_t layers) {
  if (transfer == nullptr || transfer->kept == nullptr)
    return invalid("the transfer is not one of a KV cache");
  return verbena_transfer_advance(transfer, layers * transfer->layer_blocks);
}

int verbena_kv_count(verbena_kv_cache* cache, verbena_kv_counters* counters) {
  if (cache == nullptr || counters == nullptr || !has_size(counters))
    return invalid("cache or counters is NULL, or counters->size is wrong");
  verbena_kv_counters now = cache->cache->count();
  now.size = counters->size;
  std::memcpy(counters, &now, counters->size);
  return told(VERBENA_TRANSFER_OK, "");
}
