#include "fabric/results/simulation.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "fabric/results/summary.h"

namespace verbena::fabric {
namespace {

Scenario scenario_of(const std::string& text) {
  Parsed<Scenario> scenario = read_scenario("t", text, {}, [](const std::string& name) {
    return Parsed<std::string>(tl::unexpected(InputError{name}));
  });
  EXPECT_TRUE(scenario.has_value()) << scenario.error().message;
  return *std::move(scenario);
}

Summary run(const std::string& text) {
  const Scenario scenario = scenario_of(text);
  Simulation simulation(scenario);
  EXPECT_EQ(simulation.mistake(), "");
  while (simulation.advance()) continue;
  const Summary summary = summarize(simulation);
  if (summary.outcome == Outcome::kComplete) {
    EXPECT_EQ(simulation.network().frames_in_flight(), 0u);
  }
  return summary;
}

// 62 bytes of headers go with each payload of 4096, on every link.
TEST(Simulation, OneFlowHasTheLineRateLessTheHeaders) {
  for (const char* const rate : {"25Gbps", "100Gbps", "400Gbps"}) {
    const Summary summary =
        run(fmt::format("topology: {{kind: dumbbell, left: 1}}\nlinks: {{rate: {}}}\n"
                        "workload: {{kind: flows, flows: [{{from: 0, to: 1, size: 40MB}}]}}\n",
                        rate));
    ASSERT_EQ(summary.outcome, Outcome::kComplete);
    const double line = std::stod(rate) * 1e9 * 4096 / (4096 + 62);
    EXPECT_NEAR(summary.goodput_bps / line, 1, 0.02) << rate;
    EXPECT_NEAR(*summary.slowdown_p50, 1, 0.001) << rate;
  }
}

TEST(Simulation, SmallFlowsTakeWhatTheyTakeAlone) {
  for (const char* const size : {"1", "1000", "4096", "4097", "100KB"}) {
    const Summary summary =
        run(fmt::format("topology: {{kind: fat-tree}}\n"
                        "workload: {{kind: flows, flows: [{{from: 0, to: 15, size: {}}}]}}\n",
                        size));
    EXPECT_NEAR(*summary.slowdown_p50, 1, 0.001) << size;
  }
}

TEST(Simulation, WhatSwitchesAndPCIeTakeIsPartOfWhatAFlowTakesAlone) {
  for (const char* const size : {"1", "5000", "100KB"})
    for (const char* const mode : {"store_and_forward", "cut_through"}) {
      const Summary summary =
          run(fmt::format("topology: {{kind: leaf_spine, hosts_per_leaf: 2, spines: 1}}\n"
                          "links: {{rate: 25Gbps, fabric: {{rate: 100Gbps}}}}\n"
                          "switch: {{forwarding: {{mode: {}, latency: 600ns}}}}\n"
                          "hosts: {{pcie: {{posting: 900ns, completion: 300ns}}}}\n"
                          "workload: {{kind: flows, flows: [{{from: 0, to: 7, size: {}}}]}}\n",
                          mode, size));
      EXPECT_NEAR(*summary.slowdown_p50, 1, 0.001) << size << ' ' << mode;
    }
}

TEST(Simulation, ASlowReceiverPausesAndSetsTheRate) {
  const Summary summary =
      run("topology: {kind: star, hosts: 2}\nhosts: {congestion_control: off}\n"
          "workload: {kind: flows, flows: [{from: 0, to: 1, size: 10MB}]}\n"
          "faults: {slow_receiver: h1, drain: 20Gbps, buffer: 200KB}\n");
  EXPECT_NEAR(summary.goodput_bps / 20e9 * (4096 + 62) / 4096, 1, 0.03);
  EXPECT_GT(summary.pauses, 0u);
  EXPECT_EQ(summary.drops, 0u);
}

std::string incast(int senders, const std::string& rest) {
  return fmt::format(
      "topology: {{kind: star, hosts: {}}}\nworkload: {{kind: incast, size: 2MB}}\n{}\n",
      senders + 1, rest);
}

TEST(Simulation, FlowsShareABottleneckFairly) {
  for (const int senders : {2, 4, 8}) {
    const Summary summary =
        run(incast(senders, "switch: {ecn: off}\nhosts: {congestion-control: off}"));
    EXPECT_GT(*summary.fairness, 0.999) << senders;
    EXPECT_NEAR(*summary.slowdown_p50, senders, 0.03 * senders);
  }
}

// The buffer is small, so that headroom is all that is between a pause and a loss.
TEST(Simulation, TheHeadroomOfTheStandardIsEnoughAndLessIsNot) {
  const Duration in_switch = switch_latency_of(Technology::kRoCEv2);
  const u32 needed = headroom_for(gbps(100), us(1) + in_switch / 2, NetworkConfig::kLongestFrame);
  for (const double part : {1.0, 0.5}) {
    const Summary summary =
        run(incast(8, fmt::format("switch: {{ecn: off, buffer: 1MB, headroom: {}}}\n"
                                  "hosts: {{congestion-control: off}}",
                                  static_cast<u32>(needed * part))));
    EXPECT_GT(summary.pauses, 0u);
    if (part == 1.0) {
      EXPECT_EQ(summary.drops, 0u);
    } else {
      EXPECT_GT(summary.drops, 0u);
    }
    EXPECT_EQ(summary.finished, summary.flows);
  }
}

// A ring of switches with full frames on every link in both directions: a pause waits for one, and
// is asked for on another.
TEST(Simulation, TheHeadroomThatIsComputedIsEnoughWithFramesInBothDirections) {
  const auto ring = [](const std::string&) -> Parsed<std::string> {
    return "a s0\nb s1\nc s2\nd s3\ns0 s1\ns1 s2\ns2 s3\ns3 s0\n";
  };
  const auto drops = [&ring](std::string_view headroom) {
    const auto scenario =
        read_scenario("t.yaml",
                      fmt::format("topology: {{kind: import, file: ring.txt}}\n"
                                  "workload: {{kind: flows, flows: [{{from: a, to: c, size: 20MB}},"
                                  " {{from: b, to: d, size: 20MB}}, {{from: c, to: a, size: 20MB}},"
                                  " {{from: d, to: b, size: 20MB}}]}}\n"
                                  "switch: {{buffer: 4MiB, ecn: off, headroom: {}}}\n"
                                  "hosts: {{congestion_control: off}}\n",
                                  headroom),
                      {}, ring);
    EXPECT_TRUE(scenario.has_value()) << (scenario ? "" : scenario.error().message);
    Simulation simulation(*scenario);
    while (simulation.advance()) continue;
    const Summary summary = summarize(simulation);
    EXPECT_GT(summary.pauses, 0u);
    return summary.drops;
  };
  EXPECT_EQ(drops("auto"), 0u);
  EXPECT_GT(drops("33456"), 0u);  // without the frame that a pause is asked for on
}

TEST(Simulation, PausedTimeAndQueuesAreSeen) {
  const Scenario scenario =
      scenario_of(incast(4, "switch: {ecn: off, buffer: 1MB}\nhosts: {congestion-control: off}"));
  Simulation simulation(scenario);
  while (simulation.advance()) continue;
  const Summary summary = summarize(simulation);
  EXPECT_GT(summary.longest_pause, us(100));
  EXPECT_LT(summary.longest_pause, summary.simulated);
  EXPECT_EQ(end_name(simulation, summary.longest_queue_at), "s0 -> h0");
  u64 longest = 0;
  for (const SeriesSet::Point& point : simulation.record().queues().of(summary.longest_queue_at))
    longest = std::max(longest, point.value);
  EXPECT_GT(longest, summary.longest_queue * 9 / 10);
  EXPECT_GT(summary.busiest, 0.95);
}

// Many answers wait for the link of one host: 256 * (64000 + 16 * 62) bytes take 1.33 ms, and the
// last of them as long until they are acknowledged. That is no loss.
TEST(Simulation, ALongWaitForAnAcknowledgementIsNoLoss) {
  const Summary summary =
      run("topology: {kind: star, hosts: 257}\nworkload: {kind: incast, size: 64KB}\n");
  EXPECT_EQ(summary.repairs.retransmissions, 0u);
  EXPECT_EQ(summary.repairs.timeouts, 0u);
  EXPECT_EQ(summary.drops, 0u);
  EXPECT_NEAR(summary.simulated.seconds(), 256 * (64000 + 16 * (62 + 20)) * 8 / 100e9, 10e-6);
  EXPECT_GT(summary.busiest, 0.99);
  EXPECT_LE(summary.busiest, 1);
}

// 1 MiB in flight would be a fifth of what this link holds: 800 Gb/s * 52 us = 5.2 MB.
TEST(Simulation, OneFlowFillsALongFastLink) {
  const Summary summary =
      run("topology: {kind: star, hosts: 2}\nlinks: {rate: 800Gbps, delay: 13us}\n"
          "workload: {kind: flows, flows: [{from: 0, to: 1, size: 100MB}]}\n");
  EXPECT_NEAR(*summary.slowdown_p50, 1, 0.001);
}

TEST(Simulation, RatesAreThoseOfCongestionControl) {
  const Scenario scenario = scenario_of(incast(4, "hosts: {congestion-control: dcqcn}"));
  Simulation simulation(scenario);
  while (simulation.advance()) continue;
  ASSERT_EQ(simulation.record().rates().size(), 4u);
  EXPECT_EQ(simulation.record().rates().of(0).front().value, gbps(100).bps());
  EXPECT_GT(simulation.record().rates().of(0).size(), 3u);
}

TEST(Simulation, EndsWhereItsTimeIsUp) {
  const Summary summary = run(incast(4, "duration: 100us"));
  EXPECT_EQ(summary.outcome, Outcome::kTimeIsUp);
  EXPECT_EQ(summary.finished, 0u);
  EXPECT_EQ(summary.simulated, us(100));
}

TEST(Simulation, WhatALinkThatIsDownLosesIsSentAgain) {
  const Summary summary = run(incast(2, "faults: {down: h1-s0, at: 20us, for: 30us}"));
  EXPECT_EQ(summary.outcome, Outcome::kComplete);
  EXPECT_GT(summary.lost_on_dead_links, 0u);
  EXPECT_EQ(summary.corrupted + summary.drops + summary.receiver_drops, 0u);
}

// Each loss is reported by its cause: the link from a leaf to its host is down, so that the leaf
// loses the frames on it, and has no route for the rest.
TEST(Simulation, LossesAreCountedByCause) {
  const std::string base =
      "topology: {kind: star, hosts: 3}\nhosts: {congestion_control: off}\n"
      "workload: {kind: incast, size: 1MB}\nduration: 2ms\n";
  const Summary no_route = run(base +
                               "faults: {down: h0-s0, at: 20us}\n"
                               "switch: {convergence: 1us}\n");
  EXPECT_GT(no_route.unroutable, 0u);
  EXPECT_GT(no_route.lost_on_dead_links, 0u);
  EXPECT_EQ(no_route.drops + no_route.corrupted + no_route.receiver_drops, 0u);
  const Summary overflow = run(base + "switch: {pfc: off, buffer: 100KB}\n");
  EXPECT_GT(overflow.drops, 0u);
  EXPECT_EQ(overflow.unroutable + overflow.lost_on_dead_links + overflow.corrupted, 0u);
  const Summary corrupted = run(base + "links: {error_rate: 1%}\n");
  EXPECT_GT(corrupted.corrupted, 0u);
  EXPECT_EQ(corrupted.drops + corrupted.unroutable + corrupted.lost_on_dead_links, 0u);
}

TEST(Simulation, ALongOneHasResultsOfABoundedSize) {
  const Scenario scenario = scenario_of(
      "topology: {kind: star, hosts: 2}\nlinks: {rate: 1Gbps}\nworkload: {kind: incast, size: "
      "10MB}\n");
  Simulation simulation(scenario);
  while (simulation.advance()) continue;
  EXPECT_GT(simulation.now(), Time() + ms(80));
  EXPECT_LE(simulation.record().samples().times().size(), NetworkRecord::kMostSamples);
  EXPECT_GE(simulation.record().samples().times().size(), NetworkRecord::kMostSamples / 4);
}

TEST(Simulation, NoWayIsSaid) {
  const Scenario scenario = scenario_of(
      "topology: {kind: rail-optimized, spines: 0}\n"
      "workload: {kind: flows, flows: [{from: n0.g0, to: n1.g1}]}\n");
  EXPECT_EQ(Simulation(scenario).mistake(), "there is no way from n0.g0 to n1.g1");
}

}  // namespace
}  // namespace verbena::fabric
