#include "jobs/job_results.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "fabric/scenario/units.h"
#include "jobs/job_run.h"
#include "jobs/step_report.h"

namespace verbena::jobs {
namespace {

using fabric::SummaryLine;

void add_counters(const fabric::Counters& counters, std::vector<SummaryLine>& lines) {
  lines.push_back({"link hops", std::to_string(counters.hops)});
  lines.push_back({"marks", std::to_string(counters.marks)});
  lines.push_back({"pauses", std::to_string(counters.pauses)});
  lines.push_back({"drops", std::to_string(counters.drops)});
  lines.push_back({"without a route", std::to_string(counters.unroutable)});
  lines.push_back({"lost on dead links", std::to_string(counters.lost_on_dead_links)});
  lines.push_back({"corrupted on links", std::to_string(counters.corrupted)});
}

std::vector<SummaryLine> lines_of(const Job& job, const StepResult& step) {
  if (!step.mistake.empty()) return {{"mistake", step.mistake}};
  const double seconds = step.time().seconds();
  std::vector<SummaryLine> lines = {{"step time", fabric::duration_text(step.time())}};
  if (job.training)
    lines.push_back({"tokens a second",
                     fmt::format("{:.0f}", static_cast<double>(job.training->tokens()) / seconds)});
  lines.push_back(
      {"computing", fmt::format("{:.1f} %", 100 * step.mean.all_computing().seconds() / seconds)});
  for (std::size_t i = 0; i < kPurposes; ++i)
    if (step.mean.idle[i] != Duration())
      lines.push_back({fmt::format("idle for {}", name_of(static_cast<Purpose>(i))),
                       fmt::format("{:.1f} %", 100 * step.mean.idle[i].seconds() / seconds)});
  if (step.packets.storage)
    std::ranges::copy(lines_of(*step.packets.storage), std::back_inserter(lines));
  if (step.flow_time && job.method == Method::kBoth)
    lines.push_back({"flow-level", fabric::duration_text(*step.flow_time)});
  if (job.method != Method::kFlows) add_counters(step.packets.counters, lines);
  return lines;
}

template <typename Config, typename Result>
std::vector<SummaryLine> lines_of(const Config& config, const Result& result) {
  if (!result.mistake.empty()) return {{"mistake", result.mistake}};
  std::vector<SummaryLine> lines;
  for (const fabric::Metric& metric : metrics_of(config, result))
    lines.push_back({metric.name, fmt::format("{:.6g}", metric.value)});
  return lines;
}

}  // namespace

JobResults run_job(const Job& job, const Stop& stop) {
  JobResults results;
  if (job.loading) {
    results.loading =
        run_loading(*job.loading, job.plan.topology, network_for(job.cluster, job.network), stop);
    return results;
  }
  if (job.serving) {
    results.serving =
        run_serving(*job.serving, job.plan.topology, network_for(job.cluster, job.network), stop);
    return results;
  }
  if (job.has_step()) {
    results.step = run_step(job, stop);
    return results;
  }
  for (const collectives::Shape& shape : job.shapes) {
    results.collectives.push_back(run_collective(job, shape, stop));
    if (results.collectives.back().mistake == kInterrupted) break;
  }
  return results;
}

std::string text_of(const Job& job, const JobResults& results) {
  if (results.loading)
    return loading_text(*job.loading, name_of(job.network.technology), *results.loading);
  if (results.serving)
    return serving_text(*job.serving, name_of(job.network.technology), *results.serving);
  return results.step ? text_of(job, *results.step) : text_of(job, results.collectives);
}

std::vector<SummaryLine> lines_of(const Job& job, const JobResults& results) {
  if (results.serving) return lines_of(*job.serving, *results.serving);
  if (results.loading) return lines_of(*job.loading, *results.loading);
  if (results.step) return lines_of(job, *results.step);
  std::vector<SummaryLine> lines;
  for (const CollectiveResult& result : results.collectives) {
    const std::string name(name_of(result.shape.algorithm));
    const bool is_done = result.mistake.empty();
    lines.push_back({name + " time",
                     is_done ? fabric::duration_text(ps(static_cast<i64>(result.seconds() * 1e12)))
                             : result.mistake});
    lines.push_back({name + " busbw, GB/s",
                     is_done ? fmt::format("{:.2f}", result.bus_bandwidth() / 1e9) : "-"});
    if (is_done && result.flow_error)
      lines.push_back(
          {name + " flow-level error", fmt::format("{:+.1f} %", 100 * result.flow_error->error)});
    if (!is_done || !result.by_packets || !result.by_packets->storage) continue;
    for (const SummaryLine& line : lines_of(*result.by_packets->storage))
      lines.push_back({name + " " + line.name, line.value});
  }
  return lines;
}

namespace {

// "halving_doubling"
std::string word_of(const collectives::Shape& shape) {
  std::string word(name_of(shape.algorithm));
  std::ranges::replace(word, ' ', '_');
  return word;
}

void add_counters(const fabric::Counters& counters, const fabric::Repairs& repairs,
                  const std::string& before, std::vector<fabric::Metric>& metrics) {
  for (fabric::Metric metric : fabric::metrics_of(counters)) {
    metric.name = before + metric.name;
    metrics.push_back(std::move(metric));
  }
  metrics.push_back({before + "retransmissions", static_cast<double>(repairs.retransmissions)});
  metrics.push_back({before + "timeouts", static_cast<double>(repairs.timeouts)});
}

// One that read nothing has no latency.
void add_storage(const std::optional<StorageResult>& storage, const std::string& before,
                 std::vector<fabric::Metric>& metrics) {
  if (!storage) return;
  const double none = fabric::Metric{}.value;
  const bool has_read = !storage->reads.empty();
  metrics.push_back({before + "storage.reads", static_cast<double>(storage->reads.size())});
  metrics.push_back({before + "storage.rate", storage->rate()});
  metrics.push_back({before + "storage.p50", has_read ? storage->median.seconds() : none});
  metrics.push_back({before + "storage.p99", has_read ? storage->p99.seconds() : none});
}

void add_collective(const CollectiveResult& result, std::vector<fabric::Metric>& metrics) {
  const std::string before = word_of(result.shape) + ".";
  const double none = fabric::Metric{}.value;
  const bool is_done = result.mistake.empty() && result.seconds() > 0;
  metrics.push_back({before + "time", is_done ? result.seconds() : none});
  metrics.push_back({before + "algbw", is_done ? result.algorithm_bandwidth() : none});
  metrics.push_back({before + "busbw", is_done ? result.bus_bandwidth() : none});
  metrics.push_back(
      {before + "flow_level_error", result.flow_error ? result.flow_error->error : none});
  const PacketResult packets = result.by_packets.value_or(PacketResult());
  metrics.push_back({before + "message.p99", packets.latencies.quantile(0.99).seconds()});
  add_storage(packets.storage, before, metrics);
  add_counters(packets.counters, packets.repairs, before, metrics);
}

void add_step(const Job& job, const StepResult& step, std::vector<fabric::Metric>& metrics) {
  const double none = fabric::Metric{}.value, seconds = step.time().seconds();
  const bool is_done = step.mistake.empty() && seconds > 0;
  metrics.push_back({"step.time", is_done ? seconds : none});
  metrics.push_back(
      {"step.computing", is_done ? step.mean.all_computing().seconds() / seconds : none});
  if (job.training)
    metrics.push_back(
        {"step.tokens", is_done ? static_cast<double>(job.training->tokens()) / seconds : none});
  metrics.push_back({"step.flow_level_error", step.flow_error ? step.flow_error->error : none});
  add_storage(step.packets.storage, "", metrics);
  add_counters(step.packets.counters, step.packets.repairs, "", metrics);
}

}  // namespace

std::vector<fabric::Metric> metrics_of(const Job& job, const JobResults& results) {
  std::vector<fabric::Metric> metrics = {
      {"outcome", fabric::Metric{}.value, std::string(status_of(results))}};
  if (results.loading) {
    for (fabric::Metric& metric : metrics_of(*job.loading, *results.loading))
      metrics.push_back(std::move(metric));
    add_counters(results.loading->counters, {}, "", metrics);
    return metrics;
  }
  if (results.serving) {
    for (fabric::Metric& metric : metrics_of(*job.serving, *results.serving))
      metrics.push_back(std::move(metric));
    add_counters(results.serving->counters, {}, "", metrics);
    return metrics;
  }
  if (results.step) add_step(job, *results.step, metrics);
  fabric::Counters all;
  fabric::Repairs repairs;
  for (const CollectiveResult& result : results.collectives) {
    add_collective(result, metrics);
    if (!result.by_packets) continue;
    all += result.by_packets->counters;
    repairs.retransmissions += result.by_packets->repairs.retransmissions;
    repairs.timeouts += result.by_packets->repairs.timeouts;
  }
  if (!results.step) add_counters(all, repairs, "", metrics);
  return metrics;
}

std::vector<fabric::Metric> metrics_of(const Job& job) {
  JobResults results;
  if (job.serving) results.serving.emplace();
  if (job.loading) results.loading.emplace();
  if (job.has_step()) results.step.emplace();
  for (const collectives::Shape& shape : job.shapes)
    results.collectives.push_back(
        {.shape = shape, .mistake = {}, .by_packets = {}, .flow_seconds = {}});
  return metrics_of(job, results);
}

std::vector<ResultFile> files_of(const Job& job, const JobResults& results) {
  std::vector<ResultFile> files = {{"summary.txt", text_of(job, results)}};
  if (results.loading) return files;
  if (results.serving) {
    files.push_back({"requests.csv", serving_csv(*results.serving)});
    return files;
  }
  if (results.step && results.step->mistake.empty())
    files.push_back({"trace.json", trace_of(job, *results.step)});
  if (!results.step) files.push_back({"collectives.csv", csv_of(results.collectives)});
  return files;
}

}  // namespace verbena::jobs
