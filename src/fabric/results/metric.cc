#include "fabric/results/metric.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace verbena::fabric {
namespace {

double number(u64 count) { return static_cast<double>(count); }
double number(const std::optional<Duration>& time) {
  return time ? time->seconds() : Metric{}.value;
}
double number(const std::optional<double>& value) { return value.value_or(Metric{}.value); }

constexpr double kRounding = 1e-9;  // of values that are equal

bool holds(double value, Comparison comparison, double wanted) {
  const bool is_equal = std::abs(value - wanted) <= kRounding * std::abs(wanted);
  switch (comparison) {
    case Comparison::kLess: return value < wanted;
    case Comparison::kAtMost: return value < wanted || is_equal;
    case Comparison::kGreater: return value > wanted;
    case Comparison::kAtLeast: return value > wanted || is_equal;
    case Comparison::kEqual: return is_equal;
    case Comparison::kNotEqual: return !is_equal;
  }
  CHECK_UNREACHABLE();
}

bool holds(const Expectation& expectation, const Metric& metric) {
  if (expectation.word.empty())
    return metric.word.empty() && !std::isnan(metric.value) &&
           holds(metric.value, expectation.comparison, expectation.value);
  const bool is_equal = metric.word == expectation.word;
  return expectation.comparison == Comparison::kNotEqual ? !is_equal : is_equal;
}

std::string text_of(const Metric& metric) {
  if (!metric.word.empty()) return metric.word;
  return std::isnan(metric.value) ? "not there" : fmt::format("{:.9g}", metric.value);
}

}  // namespace

std::vector<Metric> metrics_of(const Counters& c) {
  const u64 overflow = c.drops + c.early_drops + c.watchdog_drops + c.receiver_drops;
  return {{"drops", number(overflow + c.unroutable + c.lost())},
          {"drops.overflow", number(overflow)},
          {"drops.no_route", number(c.unroutable)},
          {"drops.dead_link", number(c.lost_on_dead_links)},
          {"drops.corrupted", number(c.corrupted)},
          {"marks", number(c.marks)},
          {"pauses", number(c.pauses)}};
}

std::vector<Metric> metrics_of(const Summary& s) {
  std::vector<Metric> metrics = {
      {"outcome", Metric{}.value, std::string(name_of(s.outcome))},
      {"time", s.simulated.seconds()},
      {"flows", number(s.flows)},
      {"flows.ended", number(s.finished)},
      {"flows.given_up", number(s.failed)},
      {"fct.p50", number(s.fct_p50)},
      {"fct.p99", number(s.fct_p99)},
      {"fct.max", number(s.fct_max)},
      {"slowdown.p50", number(s.slowdown_p50)},
      {"slowdown.p95", number(s.slowdown_p95)},
      {"slowdown.p99", number(s.slowdown_p99)},
      {"goodput", s.goodput_bps},
      {"fairness", number(s.fairness)},
      {"queue.max", number(s.longest_queue)},
      {"utilization.max", s.busiest},
      {"bottleneck.idle", s.bottleneck ? s.bottleneck->idle : Metric{}.value}};
  Counters counters;
  counters.drops = s.drops;
  counters.receiver_drops = s.receiver_drops;
  counters.unroutable = s.unroutable;
  counters.lost_on_dead_links = s.lost_on_dead_links;
  counters.corrupted = s.corrupted;
  counters.marks = s.marks;
  counters.pauses = s.pauses;
  for (Metric& metric : metrics_of(counters)) metrics.push_back(std::move(metric));
  metrics.push_back({"pause.max", s.longest_pause.seconds()});
  metrics.push_back({"retransmissions", number(s.repairs.retransmissions)});
  metrics.push_back({"timeouts", number(s.repairs.timeouts)});
  return metrics;
}

std::string unmet(const Expectation& expectation, std::span<const Metric> metrics) {
  const auto metric = std::ranges::find(metrics, expectation.name, &Metric::name);
  if (metric == metrics.end()) return fmt::format("{}: there is no such number", expectation.text);
  if (holds(expectation, *metric)) return "";
  return fmt::format("{}: it is {}", expectation.text, text_of(*metric));
}

std::string unknown_names(std::span<const Expectation> expectations,
                          std::span<const Metric> metrics) {
  for (const Expectation& expectation : expectations) {
    if (std::ranges::find(metrics, expectation.name, &Metric::name) != metrics.end()) continue;
    std::vector<std::string_view> names;
    for (const Metric& metric : metrics) names.push_back(metric.name);
    return fmt::format("'{}': there is no {}; there are {}", expectation.text, expectation.name,
                       fmt::join(names, ", "));
  }
  return "";
}

}  // namespace verbena::fabric
