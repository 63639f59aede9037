// The measurements of `verbena plan`: a job run with one technology on one topology, in the numbers
// by which technologies are compared.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "jobs/job.h"
#include "jobs/job_report.h"
#include "jobs/plan/bill.h"
#include "jobs/stop.h"

namespace verbena::jobs {

// If a job has more algorithms than this, fair rates (flow_level/) select the best, and the rest is
// not simulated: the selection takes milliseconds, packets take seconds.
inline constexpr std::size_t kMostAlgorithms = 3;

// An operation of a step, by which technologies are compared.
struct MeasuredOperation {
  std::string name;  // "data AllReduce", as tables say it
  u64 bytes = 0;
  bool is_of_tensor = false;  // such stay in the nodes as a rule
  Duration all{};             // of all times, in sum
  double bus_bandwidth = 0;   // bytes a second
};

struct Measured {
  std::string mistake;       // "": none; else there is nothing more
  Duration time{};           // of the step, or of the operation by the fastest algorithm
  std::string name;          // that algorithm; of a step, the operation that busbw is of
  double bus_bandwidth = 0;  // bytes a second
  std::vector<MeasuredOperation> operations{};  // of a step
  std::optional<FlowError> flow_error{};        // of a job with method: flows
  std::string extrapolated_from{};              // "": it is the job itself; else runs of these
  double cores = 0;                             // of the CPU that are busy for each GPU, on average
  PacketResult packets;
};

// Measures by packets, or by flows if that is the job's method, with the error of a twin.
[[nodiscard]] Measured measure(const Job& job, const Stop& stop);

// A line of the table.
struct Candidate {
  std::string topology;  // as the user named it; "": the file's own
  fabric::Technology technology = fabric::Technology::kRoCEv2;
  std::string variant;                    // what is otherwise than in the file; "": nothing
  std::vector<fabric::Setting> settings;  // that make it so
  std::string mistake;                    // why there is no job of it; "": there is one
  Job job;
  Bill bill;
  Measured measured;

  [[nodiscard]] bool is_done() const { return mistake.empty() && measured.mistake.empty(); }
  [[nodiscard]] std::string name() const;  // "rocev2", "rocev2 on fat_tree"
};

// Gives each candidate's step the busbw of the same operation: among those that all of them have,
// the one that takes most time in sum, of tensor parallelism only where there is no other.
void compare_same_operation(std::vector<Candidate>& candidates);

// The way between GPU and NIC where the file names none: gpudirect, or kernel_tcp for TCP.
[[nodiscard]] HostPathKind usual_path(fabric::Technology technology);
// Returns a text on the technologies' latencies of switches.
[[nodiscard]] std::string latency_text();
// Returns the settings that the technology needs, in a line.
[[nodiscard]] std::string what_to_tune(const Candidate& candidate);

// Returns the price of all GPUs, by the name that jobs have for them.
[[nodiscard]] Range price_of_gpus(const Job& job);
// Returns the cost of a unit of work: seconds times the price of GPUs and network (the middle of
// each). Less is better; only ratios have a meaning.
[[nodiscard]] double cost_of_work(const Candidate& candidate);

}  // namespace verbena::jobs
