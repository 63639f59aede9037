// Runs what a job asks for: one collective operation, by packets, by flows or by both; any script,
// by packets.
#pragma once

#include "jobs/flow_level/flow_run.h"
#include "jobs/job_report.h"
#include "jobs/stop.h"

namespace verbena::jobs {

// Returns the configuration with the payload and headers of the job's technology.
[[nodiscard]] FlowLevelConfig flow_level_config(const Job& job);

[[nodiscard]] CollectiveResult run_collective(const Job& job, const collectives::Shape& shape,
                                              const Stop& stop);

// Returns a Stop for the run of a twin (flow_level/twin.h), which ends after kMostTwinEvents
// events.
[[nodiscard]] Stop until_twin_ends(const Stop& stop);

// Returns the error, or "" if there is none and `result` is set. With kInterrupted `result` has the
// work until then. `observer` may be nullptr.
[[nodiscard]] std::string run_packets(const Job& job, const collectives::Script& script,
                                      StepObserver* observer, const Stop& stop,
                                      std::optional<PacketResult>& result);

}  // namespace verbena::jobs
