// A program counted with rates instead of packets. Each operation takes as long as flow_run.h
// counts for it, when all groups of its communicator do it at once; it ends for all members of a
// group so long after the last of them has begun, a Broadcast so long after its root has.
// Operations of different communicators do not slow each other.
//
// Ranks that have the same tasks, with groups of the same, do the same at the same time: they are
// one class, and one of them is counted for all. So 100,000 GPUs take seconds.
#pragma once

#include <string>
#include <vector>

#include "fabric/topology.h"
#include "jobs/flow_level/flow_run.h"
#include "jobs/program/program.h"
#include "jobs/timeline.h"

namespace verbena::jobs {

struct FlowProgramResult {
  std::string mistake;  // "": none
  Duration time{};      // until the last task has ended
  ClassSpans spans;
};

[[nodiscard]] FlowProgramResult run_flow_program(const Program& program, const Cluster& cluster,
                                                 const fabric::Topology& topology,
                                                 const FlowLevelConfig& config, const Stop& stop);

}  // namespace verbena::jobs
