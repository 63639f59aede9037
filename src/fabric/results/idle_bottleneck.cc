#include "fabric/results/idle_bottleneck.h"

#include <algorithm>

namespace verbena::fabric {
namespace {

constexpr double kMuch = 0.1;                  // of the time: worth a line
constexpr Duration kSomeRoundTrips = us(100);  // below, flows wait for round trips anyway

struct Interval {
  Time begin, end;
};

Duration union_of(std::vector<Interval> intervals) {
  std::ranges::sort(intervals, {}, &Interval::begin);
  Duration sum;
  Time covered;
  for (const auto& [begin, end] : intervals) {
    if (end > std::max(begin, covered)) sum = sum + (end - std::max(begin, covered));
    covered = std::max(covered, end);
  }
  return sum;
}

// When flows were there that use the link: at a host, those from it or to it; inside, all.
Duration time_with_data(const Simulation& simulation, const LinkEnd& end) {
  const Topology& topology = simulation.scenario().plan.topology;
  std::vector<Interval> intervals;
  for (u32 i = 0; i < simulation.flows().size(); ++i) {
    const Flow& flow = simulation.scenario().flows[i];
    if (!topology.is_switch[end.node] && flow.source != end.node) continue;
    if (!topology.is_switch[end.peer] && flow.destination != end.peer) continue;
    const Time finished = std::min(simulation.flows()[i].finished, simulation.measured_until());
    if (finished > flow.start) intervals.push_back({flow.start, finished});
  }
  return union_of(std::move(intervals));
}

bool has_faults(const Counters& counters) {
  return counters.lost() + counters.unroutable + counters.receiver_drops +
             counters.watchdog_drops !=
         0;
}

bool slows_senders(const Simulation& simulation) {
  const Counters& counters = simulation.network().counters();
  const bool is_tcp = speaks_tcp(simulation.scenario().network.technology);
  return counters.marks != 0 || (is_tcp && counters.drops + counters.early_drops != 0);
}

}  // namespace

std::optional<IdleBottleneck> idle_bottleneck(const Simulation& simulation) {
  const std::vector<PortTotal> totals = simulation.totals();
  const auto busiest = std::ranges::max_element(totals, {}, &PortTotal::utilization);
  if (busiest == totals.end() || busiest->utilization == 0) return std::nullopt;
  IdleBottleneck result{.link_end = static_cast<u32>(busiest - totals.begin())};
  const LinkEnd& end = simulation.ports().ends()[result.link_end];
  const Duration with_data = time_with_data(simulation, end);
  if (with_data == Duration()) return std::nullopt;
  const double measured = (simulation.measured_until() - Time()).seconds();
  const double held = simulation.held_times()[result.link_end].seconds() / with_data.seconds();
  result.idle = std::clamp(1 - busiest->utilization * measured / with_data.seconds(), 0.0, 1.0);
  result.is_congestion_control = result.idle >= kMuch && result.idle > 2 * held &&
                                 with_data >= kSomeRoundTrips && slows_senders(simulation) &&
                                 !has_faults(simulation.network().counters());
  return result;
}

}  // namespace verbena::fabric
