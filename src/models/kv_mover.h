// KVMover: moves layers of a KV cache to the decode process, by the agents of libverbena-transfer
// or, on iWARP, whose connections rdma_cm makes, by transfers on a live node. KVSink is the other
// side.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "models/kv_bench_options.h"
#include "models/kv_cache_memory.h"

namespace verbena::models {

// How the decode process is reached, as it says.
struct KVPlace {
  std::array<char, 64> address{};  // HOST:PORT
  u64 base = 0;                    // of its cache
};

class KVMover {
 public:
  virtual ~KVMover() = default;
  // All requests' blocks of the layer; the number after the last one stands for as many octets in
  // one contiguous part.
  [[nodiscard]] virtual Expected<void> start(u32 layer) = 0;
  virtual void progress() = 0;
  // All that was started is in the decode process's memory, and it was notified.
  [[nodiscard]] virtual Expected<void> finish() = 0;
};
[[nodiscard]] Expected<std::unique_ptr<KVMover>> make_mover(KVTechnology technology,
                                                            const KVBenchOptions& options,
                                                            const KVCacheMemory& cache,
                                                            const KVPlace& decode, int control);

class KVSink {
 public:
  virtual ~KVSink() = default;
  [[nodiscard]] virtual KVPlace place() const = 0;
  // Serves until `control` is readable.
  virtual void wait(int control) = 0;
};
[[nodiscard]] Expected<std::unique_ptr<KVSink>> make_sink(KVTechnology technology,
                                                          const KVCacheMemory& cache, int control);

}  // namespace verbena::models
