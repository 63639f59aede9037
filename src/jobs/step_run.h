// Runs one step of a job: of training, or of inference.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "jobs/job_report.h"
#include "jobs/stop.h"
#include "jobs/timeline.h"

namespace verbena::jobs {

// OperationTotal: the totals over all groups of a communicator for one kind of operation, of one
// size.
struct OperationTotal {
  u32 operation = 0;  // of the program's
  Purpose purpose = Purpose::kCollective;
  u32 times = 0;             // by a rank
  Duration mean{};           // from when its last input is ready to its end on all ranks
  Duration waiting{};        // mean, from when the first rank is there to when that input is
  double bus_bandwidth = 0;  // bytes a second, at that mean
};

struct StepResult {
  std::string mistake;   // "": none. kInterrupted: packets and timeline are what there was until
                         // then. Else there is nothing more.
  PacketResult packets;  // nothing at flow-level
  std::optional<Duration> flow_time{};    // at flow-level
  std::optional<FlowError> flow_error{};  // where there are no packets
  std::unique_ptr<Program> program;
  std::unique_ptr<Timeline> timeline;
  Time begin, end;  // by packets, where there are
  Account mean;     // of all ranks
  std::vector<OperationTotal> operations;

  [[nodiscard]] Duration time() const { return end - begin; }
};

// Precondition: the job has a step.
[[nodiscard]] StepResult run_step(const Job& job, const Stop& stop);

}  // namespace verbena::jobs
