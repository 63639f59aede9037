// KVMover: moves layers of a KV cache to the decode process, by an agent and the KV cache manager
// of libverbena-transfer. KVSink is the other side.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include <verbena/kv_cache.h>

#include "models/handles.h"
#include "models/kv_bench_options.h"
#include "models/kv_cache_memory.h"

namespace verbena::models {

// KVPlace: the address and the cache of the decode process, as that process reports them.
struct KVPlace {
  std::array<char, 64> address{};  // HOST:PORT
  verbena_kv_place cache{};
};

struct KVCacheDeleter {
  void operator()(verbena_kv_cache* cache) const { verbena_kv_cache_destroy(cache); }
};

// An agent with a managed cache.
class KVInstance {
 public:
  [[nodiscard]] Expected<void> open(const char* name, const KVBenchOptions& options,
                                    const KVCacheMemory& memory);
  [[nodiscard]] KVPlace place() const;
  [[nodiscard]] verbena_agent* agent() const { return agent_.get(); }
  [[nodiscard]] verbena_kv_cache* cache() const { return cache_.get(); }

 private:
  AgentPtr agent_{};
  std::unique_ptr<verbena_kv_cache, KVCacheDeleter> cache_{};
};

class KVMover {
 public:
  [[nodiscard]] Expected<void> open(const KVBenchOptions& options, const KVCacheMemory& memory,
                                    const KVPlace& decode);
  // The layer of all requests is computed; the first one begins the transfers.
  [[nodiscard]] Expected<void> start(u32 layer);
  // Starts a transfer of as many bytes in one contiguous part.
  [[nodiscard]] Expected<void> start_contiguous();
  void progress();
  // Waits until all started data is in the decode process's memory, and that process was notified.
  [[nodiscard]] Expected<void> finish();

 private:
  [[nodiscard]] Expected<void> prepare_requests(const KVBenchOptions& options,
                                                const KVPlace& decode);
  [[nodiscard]] Expected<void> prepare_contiguous(const KVBenchOptions& options,
                                                  const KVPlace& decode);
  [[nodiscard]] Expected<void> post(const TransferPtr& transfer);
  KVInstance instance_{};
  std::string peer_{};
  std::vector<TransferPtr> requests_{};
  TransferPtr contiguous_{};
  std::vector<const TransferPtr*> started_{};
};

}  // namespace verbena::models
