#include "fabric/workloads/poisson.h"

#include <algorithm>
#include <cmath>

namespace verbena::fabric {
namespace {

// Returns the sum of the rates of all links of each node, in bit/s.
std::vector<u64> rates_of_nodes(const Topology& topology) {
  std::vector<u64> rates(topology.nodes);
  for (const TopologyLink& link : topology.links)
    for (const NodeIndex node : {link.a, link.b}) rates[node] += link.config.rate.bps();
  return rates;
}

// Returns the time between two arrivals, in picoseconds, with this mean.
double gap(double mean, PRNG& prng) {
  const double chance = static_cast<double>((prng.next() >> 11) + 1) * 0x1.0p-53;  // (0, 1]
  return -mean * std::log(chance);
}

// Returns the mean time between two flows that a host with these links begins, in picoseconds.
double mean_gap_of(u64 rate_bps, const Poisson& poisson) {
  return poisson.sizes.mean() * 8 / (static_cast<double>(rate_bps) * 1e-12 * poisson.load);
}

}  // namespace

double expected_flows(const Plan& plan, const Poisson& poisson) {
  const std::vector<u64> rates = rates_of_nodes(plan.topology);
  double flows = 0;
  for (const std::vector<NodeIndex>& island : islands(plan))
    for (const NodeIndex host : island)
      if (island.size() > 1)
        flows += static_cast<double>(poisson.duration.ps()) / mean_gap_of(rates[host], poisson);
  return flows;
}

std::vector<Flow> poisson(const Plan& plan, const Poisson& poisson, PRNG& prng) {
  const std::vector<u64> rates = rates_of_nodes(plan.topology);
  const double end = static_cast<double>(poisson.duration.ps());
  std::vector<Flow> flows;
  for (const std::vector<NodeIndex>& island : islands(plan)) {
    for (std::size_t i = 0; i < island.size() && island.size() > 1; ++i) {
      const double mean_gap = mean_gap_of(rates[island[i]], poisson);
      for (double at = gap(mean_gap, prng); at < end && flows.size() < Poisson::kMostFlows;
           at += gap(mean_gap, prng)) {
        const std::size_t peer = prng.below(island.size() - 1);
        flows.push_back({.source = island[i],
                         .destination = island[peer < i ? peer : peer + 1],
                         .bytes = poisson.sizes.draw(prng),
                         .start = poisson.start + ps(static_cast<i64>(at))});
      }
    }
  }
  std::ranges::stable_sort(flows, {}, &Flow::start);
  return flows;
}

}  // namespace verbena::fabric
