// Import: the program of a job from the execution traces of its ranks. Nodes that take time become
// tasks, in the order of a rehearsal; those that take none only say what comes after what. Groups
// without common members share a communicator, as do pairs of ranks: a communicator costs each rank
// lanes.
#pragma once

#include <string>
#include <vector>

#include "jobs/chakra/trace.h"
#include "jobs/program/program.h"
#include "jobs/steps/gpu.h"
#include "jobs/steps/parts_builder.h"

namespace verbena::jobs::chakra {

// `traces`: of all ranks. Their process groups are added to those given.
[[nodiscard]] fabric::Parsed<ProgramParts> import_traces(const std::vector<Trace>& traces,
                                                         ProcessGroups groups, const GPU& gpu,
                                                         u32 ranks_per_node,
                                                         const Cutting& cutting);

}  // namespace verbena::jobs::chakra
