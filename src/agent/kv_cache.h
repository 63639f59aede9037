// KVCache: a registered paged KV cache of an agent, its block pool, and the transfers of its
// blocks. Threads: may be called by several.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include <verbena/kv_cache.h>

#include "agent/agent.h"
#include "transfer/block_pool.h"
#include "transfer/kv_layout.h"

namespace verbena::agent {

// Fails if there is no such layout.
[[nodiscard]] Expected<transfer::KVLayout> kv_layout_of(const verbena_kv_layout& layout);

class KVCache : public std::enable_shared_from_this<KVCache> {
 public:
  [[nodiscard]] static Expected<std::shared_ptr<KVCache>> make(Agent& agent,
                                                               const verbena_kv_layout& layout,
                                                               void* memory);
  ~KVCache();
  KVCache(const KVCache&) = delete;
  KVCache& operator=(const KVCache&) = delete;

  [[nodiscard]] const verbena_kv_place& place() const { return place_; }

  [[nodiscard]] Expected<transfer::BlockPool::Allocation> allocate(std::span<const u64> hashes,
                                                                   u32 more);
  [[nodiscard]] Expected<void> publish(std::span<const u32> blocks);
  [[nodiscard]] Expected<void> release(std::span<const u32> blocks);
  // Keeps blocks that a request has. They are free again, as far as nobody else has them, when the
  // result is destroyed.
  [[nodiscard]] Expected<std::shared_ptr<void>> keep(std::span<const u32> blocks);
  [[nodiscard]] verbena_kv_counters count();

 private:
  KVCache(Agent& agent, const transfer::KVLayout& layout) : agent_(agent), pool_(layout.blocks) {}
  [[nodiscard]] Expected<void> check_held(std::span<const u32> blocks) const;

  Agent& agent_;
  verbena_kv_place place_{};
  std::mutex lock_{};
  transfer::BlockPool pool_;
  std::vector<u32> requests_{};  // by block: how many have it
};

// All layers' blocks, one layer after the other. `blocks` are in the layout.
[[nodiscard]] std::vector<verbena_descriptor> kv_descriptors(const verbena_kv_place& place,
                                                             std::span<const u32> blocks);

}  // namespace verbena::agent
