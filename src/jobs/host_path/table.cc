#include "jobs/host_path/table.h"

#include <iterator>

#include <fmt/format.h>

#include "fabric/scenario/units.h"

namespace verbena::jobs {
namespace {

constexpr u64 kMessage = 512 * 1024;  // bytes: a chunk of NCCL's

std::string rate_of(Rate rate, std::string_view unlimited) {
  return rate == Rate::unlimited() ? std::string(unlimited)
                                   : fabric::rate_text(static_cast<double>(rate.bps()));
}

std::string line_of(u32 number, const HostStep& step) {
  return fmt::format("  {}  {:<56} {:>8} {:>9}{} {:>9}\n     {}\n", number, step.name,
                     fabric::duration_text(step.latency), rate_of(step.rate, "-"),
                     step.is_of_cpu ? "*" : " ", fabric::duration_text(step.cpu_time(kMessage)),
                     step.source);
}

std::string direction(std::string_view name, std::span<const HostStep> steps, u32& number,
                      u32 cores) {
  std::string text;
  Duration cpu;
  for (const HostStep& step : steps) {
    text += line_of(++number, step);
    cpu = cpu + step.cpu_time(kMessage);
  }
  const HostPathSums sums = sums_of(steps, cores);
  return text +
         fmt::format("     {:<56} {:>8} {:>9}  {:>9}\n", name, fabric::duration_text(sums.latency),
                     rate_of(std::min(sums.whole, sums.through), "-"), fabric::duration_text(cpu));
}

}  // namespace

std::string host_path_table(u32 cores) {
  std::string text = fmt::format(
      "Steps between the memories of two GPUs: latency of a message, rate (*: of one core), and "
      "CPU "
      "time\nof a message of {}. Sums are with {} cores for each NIC and direction.\n",
      fabric::bytes_text(kMessage), cores);
  for (const HostPathKind kind : kHostPathKinds) {
    const HostPathModel& model = model_of(kind);
    text += fmt::format("\n{}: {}\n     {:<56} {:>8} {:>9}  {:>9}\n", model.name, model.what,
                        "step", "latency", "rate", "CPU");
    u32 number = 0;
    text += direction("sending, in all", model.sending, number, cores);
    text += fmt::format("  {}  {}\n", ++number, "the network");
    text += direction("receiving, in all", model.receiving, number, cores);
  }
  return text;
}

}  // namespace verbena::jobs
