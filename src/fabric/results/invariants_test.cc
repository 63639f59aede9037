// Invariants of every simulation, checked on scenarios that a seed draws: topology, links,
// workload, technology, congestion control, buffers. A failure prints the scenario, which runs as
// it is.
#include <gtest/gtest.h>

#include <initializer_list>
#include <span>
#include <string>

#include "base/prng.h"
#include "fabric/results/summary.h"

namespace verbena::fabric {
namespace {

using Words = std::span<const std::string_view>;

// Draws a scenario. Lists in braces are evaluated in order, so that a seed draws the same with
// every compiler.
class Draw {
 public:
  explicit Draw(u64 seed) : prng_(seed) {}

  std::string scenario() {
    const std::string technology = one_of(kTechnologies);
    std::string text =
        join({"seed: ", number(1, 1000), "\ntechnology: ", technology, "\ntopology: ", topology(),
              "\nlinks: {rate: ", one_of(kRates), ", delay: ", one_of(kDelays),
              ", error_rate: ", one_of(kErrorRates), "}\nworkload: ", workload(), "\n"});
    if (prng_.chance(0.1)) text += join({"duration: ", number(1'000, 50'000), "ns\n"});
    if (technology == "rocev2") return text + roce();
    if (technology == "infiniband") return text + infiniband();
    return text + join({"tcp: {congestion_control: ", one_of(kTCP), "}\n"});
  }

 private:
  static constexpr std::string_view kTechnologies[] = {"rocev2",     "rocev2", "rocev2",
                                                       "infiniband", "tcp",    "iwarp"};
  static constexpr std::string_view kRates[] = {"10Gbps", "25Gbps", "100Gbps", "400Gbps",
                                                "800Gbps"};
  static constexpr std::string_view kDelays[] = {"100ns", "1us", "5us"};
  static constexpr std::string_view kErrorRates[] = {"0", "0", "0", "0.001"};
  static constexpr std::string_view kTCP[] = {"reno", "cubic", "dctcp"};
  static constexpr std::string_view kRoCE[] = {"off",    "dcqcn", "dcqcn", "window",
                                               "timely", "swift", "hpcc",  "dctcp"};
  static constexpr std::string_view kInfiniBand[] = {"off", "ib_cc", "window"};
  static constexpr std::string_view kMTUs[] = {"256", "1024", "4096", "4096"};
  static constexpr std::string_view kForwarding[] = {"store_and_forward", "cut_through"};
  static constexpr std::string_view kProbes[] = {"off", "off", "off", "20us"};
  static constexpr std::string_view kOn[] = {"on", "off"};

  static std::string join(std::initializer_list<std::string> parts) {
    std::string text;
    for (const std::string& part : parts) text += part;
    return text;
  }
  std::string one_of(Words words) { return std::string(words[prng_.below(words.size())]); }
  std::string number(u64 least, u64 most) { return std::to_string(prng_.in(least, most)); }

  std::string topology() {
    switch (prng_.below(5)) {
      case 0: return join({"{kind: star, hosts: ", number(2, 40), "}"});
      case 1: return join({"{kind: dumbbell, left: ", number(1, 8), "}"});
      case 2: return "{kind: fat_tree, k: 4}";
      case 3:
        return join({"{kind: leaf_spine, leaves: ", number(2, 4),
                     ", hosts_per_leaf: ", number(1, 6), ", spines: ", number(1, 3), "}"});
      default:
        return join({"{kind: rail_optimized, nodes: ", number(2, 4), ", rails: ", number(1, 4),
                     ", spines: 2}"});
    }
  }
  std::string workload() {
    switch (prng_.below(4)) {
      case 0: return join({"{kind: incast, size: ", number(1, 200), "KB}"});
      case 1: return join({"{kind: permutation, size: ", number(1, 1000), "KB}"});
      case 2: return join({"{kind: all_to_all, size: ", number(1, 20), "KB}"});
      default: return "{kind: poisson, load: 0.6, sizes: 50KB, duration: 50us}";
    }
  }
  std::string roce() {
    return join({"hosts: {mtu: ", one_of(kMTUs), ", congestion_control: ", one_of(kRoCE),
                 ", requester: {probe: ", one_of(kProbes),
                 "}}\nswitch: {forwarding: ", one_of(kForwarding), ", ecn: ", one_of(kOn), "}\n"});
  }
  std::string infiniband() {
    return join(
        {"hosts: {mtu: ", one_of(kMTUs), ", congestion_control: ", one_of(kInfiniBand), "}\n"});
  }

  PRNG prng_;
};

class Invariants : public ::testing::TestWithParam<u64> {};

// Decides by the drawn text, not by the scenario read from it. A probe may repeat packets that are
// not lost.
bool is_lossless(const std::string& text, const Scenario& scenario) {
  for (const std::string_view lossy : {"error_rate: 0.001", "probe: 20us"})
    if (text.find(lossy) != std::string::npos) return false;
  return scenario.network.technology == Technology::kInfiniBand ||
         (scenario.network.technology == Technology::kRoCEv2 &&
          scenario.network.switches.pfc.enabled);
}

// The bytes that an end has sent between two samples fit its rate, to the byte that a sample
// cuts.
void expect_loads_fit(const Simulation& simulation) {
  const NetworkRecord& record = simulation.record();
  const std::vector<Time>& times = record.samples().times();
  for (u32 i = 0; i < record.sent().size(); ++i) {
    const LinkEnd& end = record.ports().ends()[i];
    const double rate =
        static_cast<double>(simulation.network().port(end.node, end.port).rate.bps());
    u64 before = 0;
    for (const SeriesSet::Point& point : record.sent().of(i)) {
      if (point.sample == 0 || point.sample >= times.size()) continue;
      const Duration time = times[point.sample] - times[point.sample - 1];
      EXPECT_LE(static_cast<double>(point.value - before), rate * time.seconds() / 8 + 2)
          << end_name(simulation, i);
      before = point.value;
    }
  }
}

TEST_P(Invariants, Hold) {
  const std::string text = Draw(GetParam()).scenario();
  SCOPED_TRACE(text);
  const Parsed<Scenario> scenario = read_scenario("t", text, {}, [](const std::string& name) {
    return Parsed<std::string>(tl::unexpected(InputError{name}));
  });
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  Simulation simulation(*scenario);
  ASSERT_EQ(simulation.mistake(), "");
  while (simulation.advance()) continue;
  const Summary summary = summarize(simulation);

  if (summary.outcome != Outcome::kTimeIsUp) {
    EXPECT_EQ(summary.outcome, Outcome::kComplete);
    EXPECT_EQ(summary.finished, summary.flows);
    EXPECT_EQ(simulation.network().frames_in_flight(), 0u);
    EXPECT_EQ(summary.busiest > 0, summary.flows != 0);
  }
  EXPECT_LE(summary.busiest, 1.0);
  EXPECT_LE(summary.longest_pause, summary.simulated);
  EXPECT_GE(summary.slowdown_p50.value_or(1), 0.999);
  expect_loads_fit(simulation);
  if (!is_lossless(text, *scenario)) return;
  EXPECT_EQ(summary.drops, 0u);
  EXPECT_EQ(summary.repairs.retransmissions, 0u);
  EXPECT_EQ(summary.repairs.timeouts, 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Invariants, ::testing::Range(u64{1}, u64{301}));

}  // namespace
}  // namespace verbena::fabric
