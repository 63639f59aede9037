// The error bar of a flow-level figure: the same job scaled down to so few GPUs that packets can be
// simulated, done both ways. It has the job's topology, as far as its first GPUs need it, links,
// congestion control and sizes of messages; what flow-level leaves out, queues and the rates that
// congestion control finds above all, is in its packets.
#pragma once

#include <optional>

#include "jobs/job.h"

namespace verbena::jobs {

inline constexpr u32 kTwinGPUs = 64;  // at most, where a whole number of nodes and replicas is
// A run of the twin ends here without a result; it takes some ten seconds then.
inline constexpr u64 kMostTwinEvents = 40'000'000;

// Returns the twin of a collective operation: the first nodes, and less data in proportion to the
// ranks, so that messages are as long as in the job. Returns nullopt if the job cannot be made
// smaller.
[[nodiscard]] std::optional<Job> twin_of(const Job& job, const collectives::Shape& shape);
// Returns the twin of a step: two replicas of the model, and a layer for each stage of the
// pipeline. Returns nullopt for execution traces, whose ranks are all different.
[[nodiscard]] std::optional<Job> twin_of_step(const Job& job);

}  // namespace verbena::jobs
