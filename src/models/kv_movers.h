// The two kinds of movers and sinks.
#pragma once

#include "models/kv_mover.h"
#include "transfer/list.h"

namespace verbena::models {

// Of all requests' blocks in the layer; the number after the last: of one contiguous part.
[[nodiscard]] std::vector<transfer::Copy> kv_copies(const KVBenchOptions& options, u32 layer,
                                                    u64 from, u64 to);

[[nodiscard]] Expected<std::unique_ptr<KVMover>> make_agent_mover(const KVBenchOptions& options,
                                                                  const KVCacheMemory& cache,
                                                                  const KVPlace& decode);
[[nodiscard]] Expected<std::unique_ptr<KVSink>> make_agent_sink(const KVCacheMemory& cache);

// By transfer/node_flow.h. The sink says by an octet on `control` that a notification has come.
[[nodiscard]] Expected<std::unique_ptr<KVMover>> make_node_mover(const KVBenchOptions& options,
                                                                 const KVCacheMemory& cache,
                                                                 const KVPlace& decode,
                                                                 int control);
[[nodiscard]] Expected<std::unique_ptr<KVSink>> make_node_sink(const KVCacheMemory& cache,
                                                               int control);

}  // namespace verbena::models
