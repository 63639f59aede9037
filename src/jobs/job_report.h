// The results of a job, in a table for a terminal and one for programs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fabric/endpoint.h"
#include "fabric/trace.h"
#include "jobs/job.h"
#include "jobs/report/run_record.h"
#include "jobs/storage/storage_report.h"

namespace verbena::jobs {

struct PacketResult {
  Duration time{};
  TimeSpent spent{};
  u64 messages = 0, network_bytes = 0, nvlink_bytes = 0;
  Duration cpu_time{};    // of all hosts, in their paths
  Latencies latencies{};  // of messages between nodes
  fabric::Repairs repairs{};
  fabric::Counters counters{};
  std::optional<StorageResult> storage{};
  std::shared_ptr<const RunRecord> record{};  // nullptr with Keep::kNumbers
};

// Flow-level beside packets, on a job that is small enough for both (flow_level/twin.h).
struct FlowError {
  u32 gpus = 0;
  u64 bytes = 0;     // of the operation; 0: a step
  double error = 0;  // of the time: 0.1: flow-level takes 10 % more
};

struct CollectiveResult {
  collectives::Shape shape;  // as the schedule has it
  std::string mistake;       // "": none; else there is nothing more, or if it is kInterrupted, what
                             // there was until then
  std::optional<PacketResult> by_packets;
  std::optional<double> flow_seconds;     // flow-level
  std::optional<FlowError> flow_error{};  // where there are no packets

  // These functions return figures by packets if the job ran by packets, else those of flow-level.
  [[nodiscard]] double seconds() const;
  [[nodiscard]] double algorithm_bandwidth() const;  // bytes per second, as nccl-tests' algbw
  [[nodiscard]] double bus_bandwidth() const;        // and busbw
};

[[nodiscard]] std::string text_of(const Job& job, const std::vector<CollectiveResult>& results);
// Returns the losses by cause, such as ", 3 frames dropped by switches, 2 without a route", or ",
// no drops".
[[nodiscard]] std::string losses_text(const fabric::Counters& counters);
using NamedPackets = std::pair<std::string, const PacketResult*>;
// Returns a line on the runs in which messages waited for a tenth of the time and more: possible
// causes, and how to tell the causes apart. Returns "" if there is none.
[[nodiscard]] std::string waiting_text(const std::vector<NamedPackets>& runs);
// Returns a line of names, then a line for each result, with commas.
[[nodiscard]] std::string csv_of(const std::vector<CollectiveResult>& results);

}  // namespace verbena::jobs
