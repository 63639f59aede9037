// Poisson: flows begin at random times, between random hosts, with sizes of a distribution, so that
// hosts send `load` of what their links carry, on average.
#pragma once

#include <vector>

#include "base/prng.h"
#include "fabric/flow.h"
#include "fabric/topologies/plan.h"
#include "fabric/workloads/size_distribution.h"

namespace verbena::fabric {

struct Poisson {
  static constexpr u64 kMostFlows = 20'000'000;

  SizeDistribution sizes;
  double load = 0.3;  // of each host's link, payload alone. Above 0
  Time start{};
  Duration duration = ms(1);  // in which flows begin
};
// Returns the mean number of flows that begin.
[[nodiscard]] double expected_flows(const Plan& plan, const Poisson& poisson);
// Returns the flows in the order of their starts. More than kMostFlows are not made.
[[nodiscard]] std::vector<Flow> poisson(const Plan& plan, const Poisson& poisson, PRNG& prng);

}  // namespace verbena::fabric
