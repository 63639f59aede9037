#include "jobs/step_run.h"

#include <cmath>
#include <map>
#include <set>

#include "jobs/flow_level/flow_program.h"
#include "jobs/flow_level/twin.h"
#include "jobs/job_run.h"
#include "jobs/operation_spans.h"

namespace verbena::jobs {
namespace {

ProgramParts parts_of(const Job& job) {
  const u32 in_node = job.cluster.gpus_per_node;
  if (job.imported) return job.imported->parts;
  return job.training ? training_step(*job.training, in_node, job.cutting)
                      : inference_step(*job.inference, in_node, job.cutting);
}

Account mean_account(const StepResult& result) {
  std::array<double, kPurposes> computing{}, idle{};  // seconds, in sum
  for (const Timeline::Sample& sample : result.timeline->samples()) {
    const Account one =
        account_of(*result.program, *result.timeline, sample.rank, result.begin, result.end);
    for (std::size_t i = 0; i < kPurposes; ++i) {
      computing[i] += one.computing[i].seconds() * sample.stands_for;
      idle[i] += one.idle[i].seconds() * sample.stands_for;
    }
  }
  Account mean;
  for (std::size_t i = 0; i < kPurposes; ++i) {
    mean.computing[i] = ps(std::llround(computing[i] * 1e12 / result.program->ranks()));
    mean.idle[i] = ps(std::llround(idle[i] * 1e12 / result.program->ranks()));
  }
  return mean;
}

// OperationSum: the sums over all ranks for one kind of operation.
struct OperationSum {
  double done = 0, ranks = 0, seconds = 0, waiting = 0;
};
using OperationSums = std::map<std::pair<u32, Purpose>, OperationSum>;

OperationTotal total_of(const Program& program, u32 operation, Purpose purpose,
                        const OperationSum& sum) {
  OperationTotal total{.operation = operation, .purpose = purpose};
  total.times = static_cast<u32>(std::llround(sum.done / sum.ranks));
  const double seconds = sum.seconds / sum.done;
  total.mean = ps(std::llround(seconds * 1e12));
  total.waiting = ps(std::llround(sum.waiting / sum.done * 1e12));
  const collectives::Shape& shape = program.shape_of(operation);
  if (seconds > 0)
    total.bus_bandwidth =
        static_cast<double>(shape.bytes) / seconds * bus_factor(shape.operation, shape.ranks);
  return total;
}

std::vector<OperationTotal> totals(const Program& program, const Timeline& timeline) {
  OperationSums sums;
  OperationSpans spans(program, timeline);
  for (const auto& [rank, stands_for] : timeline.samples()) {
    std::set<std::pair<u32, Purpose>> met;
    for (const OperationSpans::Task& task : spans.of(rank)) {
      const std::pair key(task.operation, task.purpose);
      OperationSum& sum = sums[key];
      if (met.insert(key).second) sum.ranks += stands_for;
      sum.done += stands_for;
      sum.seconds += task.span->lasts().seconds() * stands_for;
      sum.waiting += task.span->waiting().seconds() * stands_for;
    }
  }
  std::vector<OperationTotal> result;
  for (const auto& [key, sum] : sums)
    result.push_back(total_of(program, key.first, key.second, sum));
  return result;
}

void sum_up(StepResult& result) {
  result.mean = mean_account(result);
  result.operations = totals(*result.program, *result.timeline);
}

void run_by_packets(const Job& job, const Stop& stop, StepResult& result) {
  result.program = std::make_unique<Program>(parts_of(job));
  result.timeline = std::make_unique<Timeline>(*result.program);
  std::optional<PacketResult> packets;
  result.mistake = run_packets(job, *result.program, result.timeline.get(), stop, packets);
  if (!packets) return;
  result.packets = *packets;
  result.end = result.begin + packets->time;
  if (result.mistake.empty()) sum_up(result);
}

void run_by_flows(const Job& job, const Stop& stop, StepResult& result) {
  if (result.program == nullptr)
    result.program = std::make_unique<Program>(parts_of(job), Program::Asked::kTasks);
  FlowProgramResult flows = run_flow_program(*result.program, job.cluster, job.plan.topology,
                                             flow_level_config(job), stop);
  result.mistake = flows.mistake;
  if (!result.mistake.empty()) return;
  result.flow_time = flows.time;
  if (result.timeline != nullptr) return;
  result.timeline = std::make_unique<Timeline>(*result.program, std::move(flows.spans));
  result.end = result.begin + flows.time;
  sum_up(result);
}

std::optional<FlowError> error_of_twin(const Job& job, const Stop& stop) {
  const std::optional<Job> twin = twin_of_step(job);
  if (!twin) return std::nullopt;
  const StepResult both = run_step(*twin, until_twin_ends(stop));
  if (!both.mistake.empty()) return std::nullopt;
  return FlowError{.gpus = twin->cluster.ranks(),
                   .error = both.flow_time->seconds() / both.time().seconds() - 1};
}

}  // namespace

StepResult run_step(const Job& job, const Stop& stop) {
  StepResult result;
  if (job.method != Method::kFlows) run_by_packets(job, stop, result);
  if (job.method != Method::kPackets && result.mistake.empty()) run_by_flows(job, stop, result);
  if (job.method == Method::kFlows && result.mistake.empty())
    result.flow_error = error_of_twin(job, stop);
  return result;
}

}  // namespace verbena::jobs
