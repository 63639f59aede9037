#include "fabric/results/summary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "fabric/scenario/units.h"

namespace verbena::fabric {
namespace {

constexpr std::array<u64, 7> kBuckets = {1'000,      10'000,      100'000,     1'000'000,
                                         10'000'000, 100'000'000, u64{1} << 60};

// Precondition: sorted and not empty. The nearest rank.
template <typename T>
T percentile(const std::vector<T>& sorted, double percent) {
  const auto rank =
      static_cast<std::size_t>(std::ceil(percent / 100 * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

struct Ended {
  u64 bytes;
  Duration time;
  double slowdown;
};

std::vector<Ended> ended_flows(const Simulation& simulation) {
  std::vector<Ended> ended;
  for (u32 i = 0; i < simulation.flows().size(); ++i) {
    const Simulation::FlowResult& result = simulation.flows()[i];
    if (result.finished == Time::never()) continue;
    const Flow& flow = simulation.scenario().flows[i];
    const Duration time = result.finished - flow.start;
    ended.push_back({flow.bytes, time,
                     static_cast<double>(time.ps()) / static_cast<double>(result.alone.ps())});
  }
  return ended;
}

void add_flows(const std::vector<Ended>& ended, Summary& summary) {
  std::vector<Duration> times;
  std::vector<double> slowdowns;
  double sum = 0, squares = 0;
  for (const Ended& flow : ended) {
    times.push_back(flow.time);
    slowdowns.push_back(flow.slowdown);
    summary.bytes += flow.bytes;
    const double rate = static_cast<double>(flow.bytes) / flow.time.seconds();
    sum += rate;
    squares += rate * rate;
  }
  if (ended.empty()) return;
  std::ranges::sort(times);
  std::ranges::sort(slowdowns);
  summary.fct_p50 = percentile(times, 50);
  summary.fct_p99 = percentile(times, 99);
  summary.fct_max = times.back();
  summary.slowdown_p50 = percentile(slowdowns, 50);
  summary.slowdown_p95 = percentile(slowdowns, 95);
  summary.slowdown_p99 = percentile(slowdowns, 99);
  if (squares > 0) summary.fairness = sum * sum / (squares * static_cast<double>(ended.size()));
}

void add_buckets(std::vector<Ended> ended, Summary& summary) {
  std::ranges::sort(ended, {}, &Ended::bytes);
  auto from = ended.begin();
  for (const u64 most : kBuckets) {
    const auto to = std::ranges::upper_bound(from, ended.end(), most, {}, &Ended::bytes);
    std::vector<double> slowdowns;
    for (; from != to; ++from) slowdowns.push_back(from->slowdown);
    if (slowdowns.empty()) continue;
    std::ranges::sort(slowdowns);
    summary.by_size.push_back({.most_bytes = most,
                               .flows = slowdowns.size(),
                               .p50 = percentile(slowdowns, 50),
                               .p95 = percentile(slowdowns, 95),
                               .p99 = percentile(slowdowns, 99)});
  }
}

void add_links(const Simulation& simulation, Summary& summary) {
  const std::vector<PortTotal> totals = simulation.totals();
  const std::vector<Duration> held = simulation.held_times();
  for (u32 i = 0; i < simulation.ports().ends().size(); ++i) {
    if (totals[i].utilization > summary.busiest) {
      summary.busiest = totals[i].utilization;
      summary.busiest_at = i;
    }
    if (held[i] > summary.longest_pause) {
      summary.longest_pause = held[i];
      summary.longest_pause_at = i;
    }
  }
  simulation.network().for_each_longest_queue([&](NodeIndex node, u32 port, u32 bytes) {
    if (bytes <= summary.longest_queue) return;
    summary.longest_queue = bytes;
    summary.longest_queue_at = simulation.ports().end_of(node, port);
  });
}

std::string size_text(u64 most) {
  return most >= u64{1} << 60 ? "more" : "to " + bytes_text(static_cast<double>(most));
}

std::string text(const std::optional<Duration>& time) { return time ? duration_text(*time) : "-"; }
std::string text(const std::optional<double>& number) {
  return number ? fmt::format("{:.3f}", *number) : "-";
}

// Returns the circle of waiting ports, nodes with their ports: "leaf0:3 -> spine1:0 -> leaf0:3".
std::string circle_of(const Deadlock& deadlock, const std::vector<std::string>& names) {
  std::string text;
  for (const WaitingQueue& queue : deadlock.cycle)
    text += fmt::format("{}:{} -> ", names[queue.node], queue.port);
  const WaitingQueue& first = deadlock.cycle.front();
  return text + fmt::format("{}:{}", names[first.node], first.port);
}

}  // namespace

std::optional<std::string> deadlock_text(const Simulation& simulation) {
  const std::optional<Deadlock>& deadlock = simulation.network().deadlock();
  if (!deadlock) return std::nullopt;
  const bool has_lanes = simulation.scenario().network.technology == Technology::kInfiniBand;
  return fmt::format("{}, {} {}; {} queues, seen after {}",
                     circle_of(*deadlock, simulation.scenario().plan.names),
                     has_lanes ? "VL" : "priority", deadlock->cycle.front().priority,
                     deadlock->queues, duration_text(deadlock->seen - Time()));
}

std::optional<std::string> watchdog_text(const Simulation& simulation) {
  const Counters& counters = simulation.network().counters();
  if (simulation.scenario().network.switches.pfc.watchdog.enabled)
    return fmt::format("it ended {} pauses, and {} frames were dropped for that", counters.storms,
                       counters.watchdog_drops);
  const bool has_pauses = simulation.scenario().network.technology != Technology::kInfiniBand;
  if (!simulation.network().deadlock() || !has_pauses) return std::nullopt;
  return "off; with switch: {pfc: {watchdog: on}} it would end the pauses, and lose frames";
}

Summary summarize(const Simulation& simulation) {
  const Counters& counters = simulation.network().counters();
  Summary summary;
  summary.outcome = simulation.outcome();
  summary.has_credits = simulation.scenario().network.technology == Technology::kInfiniBand;
  summary.simulated = simulation.measured_until() - Time();
  summary.flows = simulation.flows().size();
  const std::vector<Ended> ended = ended_flows(simulation);
  summary.finished = ended.size();
  add_flows(ended, summary);
  add_buckets(ended, summary);
  add_links(simulation, summary);
  summary.bottleneck = idle_bottleneck(simulation);
  if (summary.simulated > Duration())
    summary.goodput_bps = static_cast<double>(summary.bytes) * 8 / summary.simulated.seconds();
  summary.failed = simulation.network().flows_failed();
  summary.drops = counters.drops + counters.early_drops + counters.watchdog_drops;
  summary.receiver_drops = counters.receiver_drops;
  summary.unroutable = counters.unroutable;
  summary.lost_on_dead_links = counters.lost_on_dead_links;
  summary.corrupted = counters.corrupted;
  summary.repairs = simulation.network().repairs();
  summary.marks = counters.marks;
  summary.pauses = counters.pauses;
  summary.hops = counters.hops;
  summary.events = counters.events;
  return summary;
}

std::string end_name(const Simulation& simulation, u32 link_end) {
  const LinkEnd& end = simulation.ports().ends()[link_end];
  const std::vector<std::string>& names = simulation.scenario().plan.names;
  return fmt::format("{} -> {}", names[end.node], names[end.peer]);
}

std::vector<SummaryLine> lines_of(const Summary& s) {
  return {
      {"outcome", std::string(name_of(s.outcome))},
      {"simulated time", duration_text(s.simulated)},
      {"flows ended", fmt::format("{} of {}", s.finished, s.flows)},
      {"flows given up", std::to_string(s.failed)},
      {"FCT p50", text(s.fct_p50)},
      {"FCT p99", text(s.fct_p99)},
      {"FCT max", text(s.fct_max)},
      {"slowdown p50", text(s.slowdown_p50)},
      {"slowdown p95", text(s.slowdown_p95)},
      {"slowdown p99", text(s.slowdown_p99)},
      {"goodput", rate_text(s.goodput_bps)},
      {"fairness (Jain)", text(s.fairness)},
      {"longest queue", bytes_text(static_cast<double>(s.longest_queue))},
      {"busiest link", fmt::format("{:.1f} %", s.busiest * 100)},
      {"bottleneck idle", s.bottleneck ? fmt::format("{:.1f} %", s.bottleneck->idle * 100) : "-"},
      {s.has_credits ? "FECN marks" : "ECN marks", std::to_string(s.marks)},
      {"pauses", std::to_string(s.pauses)},
      {s.has_credits ? "longest credit wait" : "longest paused", duration_text(s.longest_pause)},
      {"dropped by switches", std::to_string(s.drops)},
      {"dropped by receivers", std::to_string(s.receiver_drops)},
      {"without a route", std::to_string(s.unroutable)},
      {"lost on dead links", std::to_string(s.lost_on_dead_links)},
      {"corrupted on links", std::to_string(s.corrupted)},
      {"sent again", std::to_string(s.repairs.retransmissions)},
      {"timeouts", std::to_string(s.repairs.timeouts)}};
}

std::string text_of(const Summary& s, const Simulation& simulation) {
  std::string out;
  const auto add = std::back_inserter(out);
  for (const SummaryLine& line : lines_of(s)) {
    std::string where;
    if (line.name == "longest queue" && s.longest_queue != 0)
      where = end_name(simulation, s.longest_queue_at);
    if (line.name == "busiest link" && s.busiest > 0) where = end_name(simulation, s.busiest_at);
    if ((line.name == "longest paused" || line.name == "longest credit wait") &&
        s.longest_pause > Duration())
      where = end_name(simulation, s.longest_pause_at);
    fmt::format_to(add, "{:<20} {}{}{}\n", line.name, line.value, where.empty() ? "" : "   ",
                   where);
  }
  if (s.bottleneck && s.bottleneck->is_congestion_control)
    fmt::format_to(add,
                   "\nthe bottleneck {} was idle {:.0f} % of the time while senders had data: "
                   "congestion control\n",
                   end_name(simulation, s.bottleneck->link_end), s.bottleneck->idle * 100);
  if (const auto deadlock = deadlock_text(simulation))
    fmt::format_to(add, "\ndeadlock: {}\n", *deadlock);
  if (const auto watchdog = watchdog_text(simulation))
    fmt::format_to(add, "\nPFC watchdog: {}\n", *watchdog);
  if (s.by_size.size() < 2) return out;
  fmt::format_to(add, "\n{:<12} {:>8} {:>9} {:>9} {:>9}\n", "flow size", "flows", "p50", "p95",
                 "p99 (slowdown)");
  for (const SlowdownBucket& bucket : s.by_size)
    fmt::format_to(add, "{:<12} {:>8} {:>9.2f} {:>9.2f} {:>9.2f}\n", size_text(bucket.most_bytes),
                   bucket.flows, bucket.p50, bucket.p95, bucket.p99);
  return out;
}

}  // namespace verbena::fabric
