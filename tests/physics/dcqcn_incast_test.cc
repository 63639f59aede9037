// K senders to one host: what DCQCN makes of the link, with the paper's parameters where the paper
// measured them, with the default ones at current rates, and with those that adapters ship with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "fabric/results/summary.h"

namespace verbena::fabric::dcqcn_incast {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Scenario scenario_of(const std::string& text) {
  const auto scenario = read_scenario("t.yaml", text, {}, nullptr);
  EXPECT_TRUE(scenario.has_value()) << scenario.error().message;
  return *scenario;
}

std::string incast(u32 senders, std::string_view rate, std::string_view rest) {
  return fmt::format("topology: {{kind: star, hosts: {}}}\nlinks: {{rate: {}, delay: 1us}}\n{}",
                     senders + 1, rate, rest);
}

struct Course {
  Summary summary;
  std::string text;
};

Course run(const std::string& text) {
  const Scenario scenario = scenario_of(text);
  Simulation simulation(scenario);
  while (simulation.advance()) continue;
  const Summary summary = summarize(simulation);
  return {summary, text_of(summary, simulation)};
}

// Zhu et al., SIGCOMM 2015, 6.1, K:1 incast at 40 Gb/s with Kmin 5 KB, Kmax 200 KB, Pmax 1 %: more
// than 39 Gb/s in all, no drops, and queues that stay around the thresholds once alpha has settled.
// Alpha starts at 1 and needs some 256 periods of 55 us for that, so 20 ms are left out.
TEST(DCQCNIncast, ThePapersParametersGiveThePapersFigures) {
  for (const u32 senders : {2u, 8u, 16u}) {
    const Scenario scenario =
        scenario_of(incast(senders, "40Gbps",
                           "switch: {ecn: {kmin: 5KB, kmax: 200KB, pmax: 1%}}\n"
                           "hosts: {mtu: 1024, congestion_control: dcqcn_paper}\n"
                           "workload: {kind: incast, size: 1GB}\nduration: 40ms\n"));
    Simulation simulation(scenario);
    const u32 end = simulation.ports().end_of(simulation.ports().ends()[0].peer, 0);
    u64 longest = 0, sent_before = 0;
    const auto sent = [&] { return simulation.totals()[end].sent_bytes; };
    const NodeIndex hub = simulation.ports().ends()[end].node;
    while (simulation.now() < Time() + ms(20)) simulation.advance();
    sent_before = sent();
    const Time since = simulation.now();
    u64 sum = 0, count = 0;
    while (simulation.advance()) {
      const u64 queue = simulation.network().switch_at(hub)->waiting_bytes(0);
      longest = std::max(longest, queue);
      sum += queue;
      ++count;
    }
    const double rate =
        static_cast<double>(sent() - sent_before) * 8 / (simulation.now() - since).seconds();
    EXPECT_GT(rate, 39e9 * 1086 / 1106) << senders;  // without gaps
    EXPECT_LT(sum / count, 250'000u) << senders;
    EXPECT_EQ(simulation.network().counters().drops, 0u);
    EXPECT_EQ(simulation.network().counters().pauses, 0u) << senders;
  }
}

// The defaults keep the link of any rate busy, share it, and ask for no pauses.
TEST(DCQCNIncast, TheDefaultsFillTheLink) {
  for (const auto& [rate, size] :
       {std::pair("25Gbps", "2500KB"), std::pair("100Gbps", "10MB"), std::pair("400Gbps", "40MB")})
    for (const u32 senders : {2u, 8u}) {
      const Course course = run(incast(senders, rate,
                                       fmt::format("switch: {{buffer: 64MiB}}\n"
                                                   "workload: {{kind: incast, size: {}}}\n",
                                                   size)));
      EXPECT_GT(course.summary.busiest, 0.94) << rate << ' ' << senders;
      EXPECT_GT(*course.summary.fairness, 0.99) << rate << ' ' << senders;
      EXPECT_THAT(course.text, Not(HasSubstr("congestion control")));
    }
}

// The case that users measured: 2 x 20 MB took 5.39 ms, one flow twice as long as the other.
TEST(DCQCNIncast, TwoSendersShareALinkOf100Gbps) {
  const Course course = run(incast(2, "100Gbps", "workload: {kind: incast, size: 20MB}\n"));
  const double wire = 2 * 20e6 * (4096.0 + 82) / 4096 * 8 / 100e9;  // seconds
  EXPECT_LT(course.summary.fct_max->seconds() / wire, 1.06);
  EXPECT_GT(*course.summary.fairness, 0.99);
}

// The result names a bottleneck that idles. linux-rdma/perftest, issue 219: two senders over real
// cards of 25 Gb/s reach 5 together.
TEST(DCQCNIncast, AnIdleBottleneckIsSaid) {
  const Course course = run(incast(8, "100Gbps",
                                   "switch: {ecn: {profile: sonic}}\n"
                                   "hosts: {congestion_control: dcqcn_nvidia}\n"
                                   "workload: {kind: incast, size: 10MB}\n"));
  ASSERT_TRUE(course.summary.bottleneck.has_value());
  EXPECT_GT(course.summary.bottleneck->idle, 0.2);
  EXPECT_THAT(course.text, HasSubstr(" of the time while senders had data: congestion control"));
  const Course off = run(incast(8, "100Gbps",
                                "hosts: {congestion_control: off}\n"
                                "workload: {kind: incast, size: 10MB}\n"));
  EXPECT_LT(off.summary.bottleneck->idle, 0.02);
  EXPECT_THAT(off.text, Not(HasSubstr("while senders had data")));
}

// The one link between two switches is the bottleneck. If a hash chooses from several links, the
// flows of the busiest one are unknown.
TEST(DCQCNIncast, AnIdleLinkBetweenSwitchesIsSaidWhereFlowsHaveNoOtherWay) {
  const auto text = [](std::string_view topology) {
    return run(fmt::format("topology: {}\nlinks: {{rate: 100Gbps, delay: 1us}}\n"
                           "hosts: {{congestion_control: dcqcn_nvidia}}\n"
                           "workload: {{kind: flows, flows: [{{from: h0, to: h4, size: 10MB}}, "
                           "{{from: h1, to: h5, size: 10MB}}, {{from: h2, to: h6, size: 10MB}}, "
                           "{{from: h3, to: h7, size: 10MB}}]}}\n",
                           topology))
        .text;
  };
  EXPECT_THAT(text("{kind: dumbbell, left: 4}"), HasSubstr("the bottleneck s0 -> s1 was idle"));
  EXPECT_THAT(text("{kind: leaf_spine, leaves: 2, hosts_per_leaf: 4, spines: 2}"),
              Not(HasSubstr("while senders had data")));
}

// A link that carries nothing between two flows is not idle while senders have data.
TEST(DCQCNIncast, TimeWithoutFlowsCountsForNothing) {
  const Course course =
      run("topology: {kind: star, hosts: 3}\n"
          "workload: {kind: flows, flows: [{from: h1, to: h0, size: 10MB}, "
          "{from: h2, to: h0, size: 10MB, start: 100ms}]}\n");
  EXPECT_LT(course.summary.bottleneck->idle, 0.02);
}

TEST(DCQCNIncast, ThresholdsHaveTheNamesOfThoseWhoShipThem) {
  const LinkConfig link{.rate = gbps(400), .delay = us(1)};
  const auto marking = [&](const std::string& ecn) {
    return scenario_of(incast(2, "400Gbps", "switch: {ecn: " + ecn + "}\nworkload: incast\n"))
        .network.switch_port(link)
        .marking;
  };
  EXPECT_EQ(marking("on").k_min, 1'600'000u);
  EXPECT_EQ(marking("{profile: sonic}").k_min, 1'048'576u);
  EXPECT_EQ(marking("{profile: sonic}").k_max, 2'097'152u);
  EXPECT_DOUBLE_EQ(marking("{profile: sonic}").p_max, 0.05);
  EXPECT_EQ(marking("{profile: cumulus}").k_min, 150'000u);
  EXPECT_EQ(marking("{profile: cumulus, kmin: 1MB}").k_min, 1'000'000u);
}

}  // namespace
}  // namespace verbena::fabric::dcqcn_incast
