#include "jobs/step_run.h"

#include <map>

#include "jobs/job_run.h"

namespace verbena::jobs {
namespace {

ProgramParts parts_of(const Job& job) {
  const u32 in_node = job.cluster.gpus_per_node;
  if (job.imported) return job.imported->parts;
  return job.training ? training_step(*job.training, in_node, job.cutting)
                      : inference_step(*job.inference, in_node, job.cutting);
}

Account mean_account(const StepResult& result) {
  Account sum;
  const u32 ranks = result.program->ranks();
  for (u32 rank = 0; rank < ranks; ++rank) {
    const Account one =
        account_of(*result.program, *result.timeline, rank, result.begin, result.end);
    for (std::size_t i = 0; i < kPurposes; ++i) {
      sum.computing[i] = sum.computing[i] + one.computing[i];
      sum.idle[i] = sum.idle[i] + one.idle[i];
    }
  }
  for (std::size_t i = 0; i < kPurposes; ++i) {
    sum.computing[i] = sum.computing[i] / ranks;
    sum.idle[i] = sum.idle[i] / ranks;
  }
  return sum;
}

std::vector<OperationTotal> totals(const Program& program, const Timeline& timeline) {
  struct Sum {
    u64 done = 0, ranks = 0;
    double seconds = 0;
  };
  std::map<std::pair<u32, Purpose>, Sum> sums;
  for (u32 rank = 0; rank < program.ranks(); ++rank) {
    const std::vector<Task>& tasks = program.tasks_of(rank);
    std::map<std::pair<u32, Purpose>, bool> met;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      if (tasks[i].computes()) continue;
      const std::pair key(tasks[i].operation, tasks[i].purpose);
      Sum& sum = sums[key];
      if (!std::exchange(met[key], true)) ++sum.ranks;
      ++sum.done;
      const Span& span = timeline.spans_of(rank)[i];
      if (span.end > span.begin) sum.seconds += (span.end - span.begin).seconds();
    }
  }
  std::vector<OperationTotal> result;
  for (const auto& [key, sum] : sums) {
    OperationTotal total{.operation = key.first, .purpose = key.second};
    total.times = static_cast<u32>(sum.done / sum.ranks);
    const double seconds = sum.seconds / static_cast<double>(sum.done);
    total.mean = ps(static_cast<i64>(seconds * 1e12));
    const collectives::Shape& shape = program.shape_of(key.first);
    if (seconds > 0)
      total.bus_bandwidth =
          static_cast<double>(shape.octets) / seconds * bus_factor(shape.operation, shape.ranks);
    result.push_back(total);
  }
  return result;
}

}  // namespace

StepResult run_step(const Job& job, const Stop& stop) {
  StepResult result;
  result.program = std::make_unique<Program>(parts_of(job));
  result.timeline = std::make_unique<Timeline>(*result.program);
  std::optional<PacketResult> packets;
  result.mistake = run_packets(job, *result.program, result.timeline.get(), stop, packets);
  if (!packets) return result;
  result.packets = *packets;
  result.end = result.begin + packets->time;
  if (!result.mistake.empty()) return result;
  result.mean = mean_account(result);
  result.operations = totals(*result.program, *result.timeline);
  return result;
}

}  // namespace verbena::jobs
