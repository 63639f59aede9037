#include "jobs/plan/comparison.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "collectives/make_schedule.h"
#include "fabric/scenario/units.h"
#include "jobs/flow_level/flow_run.h"
#include "jobs/job_run.h"
#include "jobs/step_run.h"

namespace verbena::jobs {
namespace {

double seconds_by_flows(const Job& job, const collectives::Shape& shape, const Stop& stop) {
  const auto schedule = collectives::make_schedule(shape);
  return run_flow_level(*schedule, job.cluster, job.plan.topology, flow_level_config(job), stop)
      .seconds;
}

std::vector<collectives::Shape> shortlist(const Job& job, const Stop& stop) {
  if (job.shapes.size() <= kMostAlgorithms) return job.shapes;
  std::vector<std::pair<double, std::size_t>> by_time;
  for (std::size_t i = 0; i < job.shapes.size(); ++i)
    by_time.emplace_back(seconds_by_flows(job, job.shapes[i], stop), i);
  std::ranges::sort(by_time);
  std::vector<collectives::Shape> best;
  for (std::size_t i = 0; i < kMostAlgorithms; ++i) best.push_back(job.shapes[by_time[i].second]);
  return best;
}

// At flow-level, what packets would take, as far as a smaller job tells: congestion control and
// host paths are in those alone.
Duration corrected(double seconds, const std::optional<FlowError>& error) {
  return ps(std::llround(seconds / (1 + (error ? error->error : 0)) * 1e12));
}

double cores_of(const Job& job, const PacketResult& packets) {
  if (packets.time == Duration()) return 0;
  return packets.cpu_time.seconds() / packets.time.seconds() / job.cluster.ranks();
}

Measured of_collective(const Job& job, const Stop& stop) {
  Measured best{.mistake = "no algorithm ran", .name = {}, .packets = {}};
  for (const collectives::Shape& shape : shortlist(job, stop)) {
    const CollectiveResult result = run_collective(job, shape, stop);
    if (!result.mistake.empty()) {
      if (!best.mistake.empty()) best.mistake = result.mistake;
      if (result.mistake == kInterrupted)
        return {.mistake = kInterrupted, .name = {}, .packets = {}};
      continue;
    }
    const Duration time = corrected(result.seconds(), result.flow_error);
    if (best.mistake.empty() && best.time <= time) continue;
    const PacketResult packets = result.by_packets.value_or(PacketResult());
    best = {.mistake = {},
            .time = time,
            .name = std::string(name_of(result.shape.algorithm)),
            .bus_bandwidth = result.bus_bandwidth(),
            .flow_error = result.flow_error,
            .cores = cores_of(job, packets),
            .packets = packets};
  }
  return best;
}

MeasuredOperation operation_of_step(const StepResult& step, const OperationTotal& total) {
  const collectives::Shape& shape = step.program->shape_of(total.operation);
  return {.name = fmt::format("{} {} of {}", name_of(total.purpose), operation_of(shape),
                              fabric::bytes_text(static_cast<double>(shape.bytes))),
          .bytes = shape.bytes,
          .is_of_tensor = total.purpose == Purpose::kTensor,
          .all = total.mean * total.times,
          .bus_bandwidth = total.bus_bandwidth};
}

const MeasuredOperation* find(const Measured& measured, const MeasuredOperation& like) {
  for (const MeasuredOperation& one : measured.operations)
    if (one.name == like.name && one.bytes == like.bytes) return &one;
  return nullptr;
}

Measured of_step(const Job& job, const Stop& stop) {
  const StepResult step = run_step(job, stop);
  Measured measured{.mistake = step.mistake, .name = {}, .packets = {}};
  if (!step.mistake.empty()) return measured;
  measured.time = corrected(step.time().seconds(), step.flow_error);
  measured.flow_error = step.flow_error;
  measured.cores = cores_of(job, step.packets);
  measured.packets = step.packets;
  for (const OperationTotal& total : step.operations)
    if (total.bus_bandwidth > 0) measured.operations.push_back(operation_of_step(step, total));
  return measured;
}

std::string tcp_cores(const Job& job) {
  if (!job.run.host_path.kind) return "";
  return fmt::format("; {}, {} cores for each NIC, each way: {} of a node with {} NICs",
                     model_of(*job.run.host_path.kind).name, job.run.host_path.cores,
                     2 * job.run.host_path.cores * job.cluster.gpus_per_node,
                     job.cluster.gpus_per_node);
}

std::string_view control_of(const Job& job) {
  switch (job.network.tcp.tcp.control) {
    case tcp::ControlKind::kReno: return "Reno";
    case tcp::ControlKind::kCUBIC: return "CUBIC";
    case tcp::ControlKind::kDCTCP: return "DCTCP, which needs ECN marks at switches";
  }
  CHECK_UNREACHABLE();
}

}  // namespace

Measured measure(const Job& job, const Stop& stop) {
  Job once = job;
  if (once.method == Method::kBoth) once.method = Method::kPackets;
  return job.has_step() ? of_step(once, stop) : of_collective(once, stop);
}

void compare_same_operation(std::vector<Candidate>& candidates) {
  std::vector<Measured*> steps;
  for (Candidate& candidate : candidates)
    if (candidate.is_done() && !candidate.measured.operations.empty())
      steps.push_back(&candidate.measured);
  if (steps.empty()) return;
  const auto in_sum = [&](const MeasuredOperation& operation) {
    std::optional<Duration> sum = Duration();
    for (const Measured* const step : steps) {
      const MeasuredOperation* const one = find(*step, operation);
      if (one == nullptr) return std::optional<Duration>();
      sum = *sum + one->all;
    }
    return sum;
  };
  const MeasuredOperation* best = nullptr;
  std::pair<bool, Duration> weight;
  for (const MeasuredOperation& operation : steps.front()->operations)
    if (const std::optional<Duration> sum = in_sum(operation)) {
      const std::pair its_weight(!operation.is_of_tensor, *sum);
      if (best == nullptr || weight < its_weight) {
        best = &operation;
        weight = its_weight;
      }
    }
  if (best == nullptr) return;
  const MeasuredOperation chosen = *best;
  for (Measured* const step : steps) {
    step->name = chosen.name;
    step->bus_bandwidth = find(*step, chosen)->bus_bandwidth;
  }
}

std::string Candidate::name() const {
  const std::string_view name = name_of(technology);
  return topology.empty() ? std::string(name) : fmt::format("{} on {}", name, topology);
}

HostPathKind usual_path(fabric::Technology technology) {
  return technology == fabric::Technology::kTCP ? HostPathKind::kKernelTCP
                                                : HostPathKind::kGPUDirect;
}

std::string latency_text() {
  return fmt::format(
      "The links' delays are of cables; switches add {} (InfiniBand, cutting through) or {} "
      "(Ethernet), unless the file says otherwise.",
      fabric::duration_text(switch_latency_of(fabric::Technology::kInfiniBand)),
      fabric::duration_text(switch_latency_of(fabric::Technology::kRoCEv2)));
}

std::string what_to_tune(const Candidate& candidate) {
  switch (candidate.technology) {
    case fabric::Technology::kRoCEv2:
      return "PFC headroom, ECN thresholds, DSCP and priorities on every port; DCQCN on every NIC";
    case fabric::Technology::kInfiniBand:
      return "nothing for flow control, which is credits; a subnet manager, and its routing";
    case fabric::Technology::kIWARP:
      return fmt::format("nothing on switches; congestion control of the NICs' TCP: {}",
                         control_of(candidate.job));
    case fabric::Technology::kTCP:
      return fmt::format("nothing on switches; congestion control: {}{}", control_of(candidate.job),
                         tcp_cores(candidate.job));
  }
  CHECK_UNREACHABLE();
}

Range price_of_gpus(const Job& job) {
  const std::string_view name = job.gpu() != nullptr ? job.gpu()->name : std::string_view();
  return price_of_gpu(name).dollars * job.cluster.ranks();
}

double cost_of_work(const Candidate& candidate) {
  return candidate.measured.time.seconds() *
         (price_of_gpus(candidate.job).middle() + candidate.bill.dollars.middle());
}

}  // namespace verbena::jobs
