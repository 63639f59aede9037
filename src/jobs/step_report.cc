#include "jobs/step_report.h"

#include <fmt/format.h>

#include "fabric/scenario/units.h"

namespace verbena::jobs {
namespace {

using fabric::bytes_text;
using fabric::duration_text;

double share(Duration part, Duration whole) {
  return whole == Duration() ? 0 : 100 * part.seconds() / whole.seconds();
}

// "forward 20 %, backward 41 %"
std::string parts_text(const std::array<Duration, kPurposes>& parts, Duration whole) {
  std::string text;
  for (std::size_t i = 0; i < kPurposes; ++i)
    if (parts[i] != Duration())
      text += fmt::format("{}{} {:.1f} %", text.empty() ? "" : ", ",
                          name_of(static_cast<Purpose>(i)), share(parts[i], whole));
  return text;
}

std::string training_head(const TrainingConfig& config, const StepResult& result) {
  const Parallelism& parallel = config.parallel;
  const double seconds = result.time().seconds(), tokens = static_cast<double>(config.tokens());
  const double peak = config.gpu.flops * parallel.ranks() * seconds;
  std::string text =
      fmt::format("training {}, {} GPUs ({}): tensor {}, pipeline {}, data {}, expert {}\n",
                  config.model.name, parallel.ranks(), config.gpu.name, parallel.tensor,
                  parallel.pipeline, parallel.data, parallel.expert);
  text +=
      fmt::format("{:<12} {} for {} sequences of {} tokens\n", "step", duration_text(result.time()),
                  config.tokens() / config.sequence, config.sequence);
  return text + fmt::format("{:<12} {:.0f} a second, {:.0f} of each GPU, {:.1f} % of its FLOPs\n",
                            "tokens", tokens / seconds, tokens / seconds / parallel.ranks(),
                            100 * config.flops() / peak);
}

// Returns when the last task for this purpose ended, or nullopt if there was none.
std::optional<Time> end_of(const StepResult& result, Purpose purpose) {
  std::optional<Time> end;
  for (const Timeline::Sample& sample : result.timeline->samples()) {
    const std::vector<Task>& tasks = result.program->tasks_of(sample.rank);
    for (std::size_t i = 0; i < tasks.size(); ++i)
      if (tasks[i].purpose == purpose)
        end = std::max(end.value_or(Time()), result.timeline->spans_of(sample.rank)[i].end);
  }
  return end;
}

std::string inference_head(const InferenceConfig& config, const StepResult& result) {
  std::string text = fmt::format(
      "inference {}, {} GPUs ({}): {} instances of {}, {} requests of {} tokens at each\n",
      config.model.name, config.ranks(), config.gpu.name, config.instances, config.tensor,
      config.batch, config.prompt);
  const Duration first = end_of(result, Purpose::kPrefill).value_or(result.begin) - result.begin;
  if (const auto loaded = end_of(result, Purpose::kModelLoad))
    text += fmt::format("{:<12} {}\n", "model load", duration_text(*loaded - result.begin));
  text += fmt::format("{:<12} {}\n", "first token", duration_text(first));
  if (config.output > 1)
    text += fmt::format("{:<12} {} for each of {}\n", "next tokens",
                        duration_text((result.time() - first) / (config.output - 1)),
                        config.output - 1);
  return text + fmt::format("{:<12} {}\n", "all", duration_text(result.time()));
}

std::string imported_head(const ImportedJob& job, const StepResult& result) {
  return fmt::format("chakra, {} GPUs ({}): {} nodes\n{:<12} {}\n", result.program->ranks(),
                     job.gpu.name, job.nodes, "step", duration_text(result.time()));
}

std::string head_of(const Job& job, const StepResult& result) {
  if (job.imported) return imported_head(*job.imported, result);
  return job.training ? training_head(*job.training, result)
                      : inference_head(*job.inference, result);
}

std::string operations_text(const StepResult& result) {
  if (result.operations.empty()) return "";
  std::string text =
      fmt::format("\n{:<20} {:<14} {:<17} {:>10} {:>6} {:>10} {:>10} {:>9}\n", "communicator",
                  "operation", "algorithm", "size", "times", "waiting", "time", "busbw");
  for (const OperationTotal& total : result.operations) {
    const collectives::Shape& shape = result.program->shape_of(total.operation);
    text += fmt::format(
        "{:<20} {:<14} {:<17} {:>10} {:>6} {:>10} {:>10} {:>4.0f} GB/s\n",
        result.program->communicator_of(total.operation).name(), operation_of(shape),
        algorithm_of(shape), bytes_text(static_cast<double>(shape.bytes)), total.times,
        duration_text(total.waiting), duration_text(total.mean), total.bus_bandwidth / 1e9);
  }
  return text;
}

std::string error_text(const std::optional<FlowError>& error) {
  if (!error) return "its error is not known: no smaller job of this kind ends soon by packets";
  return fmt::format("its error is {:+.1f} %, as on {} GPUs with fewer layers by packets",
                     100 * error->error, error->gpus);
}

std::string flows_text(Duration time, Method method, Duration by_packets,
                       const std::optional<FlowError>& error) {
  if (method == Method::kFlows)
    return fmt::format("\nat flow-level: fair rates instead of packets; {}\n", error_text(error));
  return fmt::format("\n{:<12} {}, {:+.1f} % of the step by packets\n", "flow-level",
                     duration_text(time), share(time, by_packets) - 100);
}

}  // namespace

std::string text_of(const Job& job, const StepResult& result) {
  if (!result.mistake.empty()) return result.mistake + "\n";
  std::string text = head_of(job, result);
  const Duration all = result.time(), computing = result.mean.all_computing();
  text += fmt::format("{:<12} {:.1f} %: {}\n", "computing", share(computing, all),
                      parts_text(result.mean.computing, all));
  text += fmt::format("{:<12} {:.1f} %: {}\n", "idle", share(all - computing, all),
                      parts_text(result.mean.idle, all));
  text += operations_text(result);
  if (result.flow_time) text += flows_text(*result.flow_time, job.method, all, result.flow_error);
  if (job.method == Method::kFlows) return text;
  if (result.packets.storage) text += fmt::format("\n{}", text_of(*result.packets.storage));
  if (const std::string why = waiting_text({{"the step", &result.packets}}); !why.empty())
    text += "\n" + why;
  const fabric::Counters& counters = result.packets.counters;
  return text + fmt::format("\n{} link hops, {} marks, {} pauses{}\n", counters.hops,
                            counters.marks, counters.pauses, losses_text(counters));
}

}  // namespace verbena::jobs
