#include "fabric/results/idle_bottleneck.h"

#include <algorithm>
#include <span>

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

enum class Use : u8 { kNo, kYes, kPerhaps };  // there are several ways

// Whether the flow goes over the link, in this direction.
Use use_of(const Simulation& simulation, const Flow& flow, u32 link_end) {
  const Network& network = simulation.network();
  bool has_choice = false;
  for (NodeIndex node = flow.source; node != flow.destination;) {
    const std::span<const u16> ways = network.ways(node, flow.destination);
    if (ways.empty()) return Use::kNo;
    has_choice |= ways.size() > 1;
    for (const u16 way : ways)
      if (simulation.ports().end_of(node, way) == link_end)
        return has_choice ? Use::kPerhaps : Use::kYes;
    node = network.node_of(network.port(node, ways[0]).peer);
  }
  return has_choice ? Use::kPerhaps : Use::kNo;
}

struct Demand {
  Duration time{};         // in which flows were there that use the link
  bool is_certain = true;  // else some of them may have taken other ways
};

// At a host all its flows use the link.
Use use_at(const Simulation& simulation, const Flow& flow, const LinkEnd& end, u32 link_end) {
  const Topology& topology = simulation.scenario().plan.topology;
  const bool is_single = simulation.network().ports_of(end.node) == 1;
  if (!topology.is_switch[end.peer])
    return flow.destination != end.peer                   ? Use::kNo
           : simulation.network().ports_of(end.peer) == 1 ? Use::kYes
                                                          : Use::kPerhaps;
  if (!topology.is_switch[end.node])
    return flow.source != end.node ? Use::kNo : is_single ? Use::kYes : Use::kPerhaps;
  return use_of(simulation, flow, link_end);
}

Demand demand_of(const Simulation& simulation, u32 link_end) {
  const LinkEnd& end = simulation.ports().ends()[link_end];
  Demand demand;
  std::vector<Interval> intervals;
  for (u32 i = 0; i < simulation.flows().size(); ++i) {
    const Flow& flow = simulation.scenario().flows[i];
    const Use use = use_at(simulation, flow, end, link_end);
    if (use == Use::kNo) continue;
    demand.is_certain &= use == Use::kYes;
    const Time finished = std::min(simulation.flows()[i].finished, simulation.measured_until());
    if (finished > flow.start) intervals.push_back({flow.start, finished});
  }
  demand.time = union_of(std::move(intervals));
  return demand;
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
  const Demand demand = demand_of(simulation, result.link_end);
  if (demand.time == Duration()) return std::nullopt;
  const double measured = (simulation.measured_until() - Time()).seconds();
  const double held = simulation.held_times()[result.link_end].seconds() / demand.time.seconds();
  result.idle = std::clamp(1 - busiest->utilization * measured / demand.time.seconds(), 0.0, 1.0);
  result.is_congestion_control = demand.is_certain && result.idle >= kMuch &&
                                 result.idle > 2 * held && demand.time >= kSomeRoundTrips &&
                                 slows_senders(simulation) &&
                                 !has_faults(simulation.network().counters());
  return result;
}

}  // namespace verbena::fabric
