// Other topologies for a job: of one kind, as large as the job's GPUs need, or of another file.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "fabric/scenario/scenario.h"

namespace verbena::jobs {

// Returns the kinds of topologies that fit themselves to the job.
[[nodiscard]] std::span<const std::string_view> topology_kinds();
// Returns the topology of the kind, such as "{kind: star, hosts: 16}", or "" if there is no such
// kind. rail_only is rail_optimized without spines.
[[nodiscard]] std::string topology_of_kind(std::string_view kind, u32 gpus, u32 gpus_per_node);

struct JobSize {
  u32 gpus = 0, gpus_per_node = 0;
};
// The job's file, its preset written out, with the topology (and the links, if there are) of the
// other, and the same GPUs. `other`: YAML with `topology`, from a file in `folder`.
[[nodiscard]] fabric::Parsed<std::string> with_topology(const std::string& job,
                                                        const std::string& other,
                                                        const std::string& folder, JobSize size);

}  // namespace verbena::jobs
