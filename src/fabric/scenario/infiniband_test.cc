#include <gtest/gtest.h>

#include "fabric/results/summary.h"
#include "fabric/scenario/scenario.h"

namespace verbena::fabric {
namespace {

Parsed<Scenario> read_infiniband(const std::string& rest,
                                 const std::vector<Setting>& settings = {}) {
  return read_scenario("t.yaml", "technology: infiniband\nworkload: incast\n" + rest, settings,
                       [](const std::string& name) -> Parsed<std::string> {
                         return tl::unexpected(InputError{name});
                       });
}

std::string infiniband_mistake(const std::string& rest, const std::vector<Setting>& settings = {}) {
  const Parsed<Scenario> scenario = read_infiniband(rest, settings);
  return scenario ? "none" : scenario.error().message;
}

TEST(InfiniBandScenario, HasDefaults) {
  const Parsed<Scenario> scenario = read_infiniband("topology: fat_tree\n");
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  const NetworkConfig& network = scenario->network;
  EXPECT_EQ(network.technology, Technology::kInfiniBand);
  EXPECT_EQ(network.infiniband.lanes, 8u);
  EXPECT_EQ(network.infiniband.routing, RoutingEngine::kFatTree);
  EXPECT_FALSE(network.infiniband.fecn.enabled);
  EXPECT_TRUE(network.infiniband.cuts_through);
  EXPECT_FALSE(network.host({}).device.congestion.controls());
  EXPECT_EQ(read_infiniband("topology: dumbbell\n")->network.infiniband.routing,
            RoutingEngine::kUpDown);
}

TEST(InfiniBandScenario, SaysWhatIsSet) {
  const Parsed<Scenario> scenario = read_infiniband(R"(
topology: {kind: star, hosts: 4}
links: {rate: NDR, delay: 150ns}
hosts: {mtu: 2048, congestion_control: {algorithm: ib_cc, ccti_timer: 50us, cct_step: 2}}
infiniband:
  {vls: 4, sl2vl: [0, 1, 2, 3, 3, 2, 1, 0], high_priority: [3], weights: [1, 255], buffer: 64KiB,
   credit_update: 4KiB, routing: min_hop, forwarding: {mode: store_and_forward, latency: 90ns},
   fecn: {threshold: 7, marking_rate: 3}, convergence: 1ms}
)");
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  const InfiniBandConfig& config = scenario->network.infiniband;
  EXPECT_EQ(scenario->plan.topology.links[0].config.rate, gbps(400));
  EXPECT_EQ(config.lanes, 4u);
  EXPECT_EQ(config.sl_to_vl, (std::array<u8, kPriorities>{0, 1, 2, 3, 3, 2, 1, 0}));
  EXPECT_EQ(config.arbitration.strict, 1u << 3);
  EXPECT_EQ(config.arbitration.quantum[1], 255u * 64);
  EXPECT_EQ(config.buffer_bytes, 65'536u);
  EXPECT_EQ(config.credit_update_bytes, 4096u);
  EXPECT_EQ(config.mtu_bytes, 2048u);
  EXPECT_EQ(config.routing, RoutingEngine::kMinHop);
  EXPECT_FALSE(config.cuts_through);
  EXPECT_EQ(config.latency, ns(90));
  EXPECT_TRUE(config.fecn.enabled);  // as ib_cc needs it
  EXPECT_EQ(config.fecn.threshold, 7u);
  EXPECT_EQ(config.fecn.marking_rate, 3u);
  EXPECT_EQ(scenario->network.faults.convergence, ms(1));
  const auto congestion = scenario->network.host({.rate = gbps(400)}).device.congestion;
  EXPECT_EQ(std::get<IBCCParameters>(congestion.algorithm).ccti_timer, us(50));
}

TEST(InfiniBandScenario, MistakesNameLineKeyAndFix) {
  const auto star = [](const std::string& rest) {
    return infiniband_mistake("topology: star\n" + rest + "\n");
  };
  EXPECT_EQ(star("switch: {pfc: off}"),
            "t.yaml:4: switch.pfc: InfiniBand never pauses: credits hold senders back");
  EXPECT_EQ(star("switch: {ecn: {kmin: 1k}}"),
            "t.yaml:4: switch.ecn: InfiniBand marks with FECN: infiniband: {fecn: on}");
  EXPECT_EQ(star("infiniband: {vls: 3}"),
            "t.yaml:4: infiniband.vls: there are 1, 2, 4 or 8 lanes of data (IBTA 7.6.1)");
  EXPECT_EQ(star("infiniband: {vls: 2, sl2vl: [0, 2]}"),
            "t.yaml:4: infiniband.sl2vl: '2' is none of 0 .. 1");
  EXPECT_EQ(star("infiniband: {weights: [0]}"),
            "t.yaml:4: infiniband.weights: '0' is none of 1 .. 255");
  EXPECT_EQ(star("infiniband: {buffer: 4096}"),
            "t.yaml:4: infiniband.buffer: '4096' is too small; 4206 bytes at least");
  EXPECT_EQ(star("infiniband: {buffer: 1MiB}"),
            "t.yaml:4: infiniband.buffer: 128 KiB is the most that 12 bits of credits can tell "
            "(IBTA 7.9.4)");
  EXPECT_EQ(star("hosts: {congestion_control: dcqcn}"),
            "t.yaml:4: hosts: congestion_control: InfiniBand has ib_cc, window and off");
  EXPECT_EQ(star("faults: {stuck_pause: h1}"),
            "t.yaml:4: faults: stuck_pause is of Ethernet: InfiniBand has no pauses");
  EXPECT_EQ(infiniband_mistake("topology: dumbbell\ninfiniband: {routing: fat_tree}\n"),
            "t.yaml:4: infiniband.routing: s0-s1 joins switches of one rank, so that this is no "
            "fat tree; up_down takes it");
  EXPECT_EQ(
      read_scenario("t.yaml", "topology: star\nworkload: incast\ninfiniband: {vls: 1}\n", {}, {})
          .error()
          .message,
      "t.yaml:3: infiniband: it is of another technology; write technology: infiniband");
}

TEST(InfiniBandScenario, SettingsReachItsKeys) {
  const Parsed<Scenario> scenario =
      read_infiniband("topology: star\n", {{"vls", "2"}, {"congestion_control", "ib_cc"}});
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  EXPECT_EQ(scenario->network.infiniband.lanes, 2u);
  EXPECT_TRUE(scenario->network.infiniband.fecn.enabled);
}

// The summary shows waits for credits, and nothing is paused or dropped.
TEST(InfiniBandScenario, WaitsAreInTheSummary) {
  const Parsed<Scenario> scenario = read_infiniband("topology: {kind: star, hosts: 9}\n");
  Simulation simulation(*scenario);
  while (simulation.advance()) continue;
  const Summary summary = summarize(simulation);
  EXPECT_EQ(summary.finished, 8u);
  EXPECT_EQ(summary.drops + summary.corrupted + summary.pauses, 0u);
  EXPECT_TRUE(simulation.record().pauses().empty());
  EXPECT_GT(summary.longest_pause, summary.simulated / 2);
  EXPECT_LT(summary.longest_pause, summary.simulated);
  const u32 most = summary.longest_pause_at;
  EXPECT_TRUE(end_name(simulation, most).ends_with(" -> s0")) << end_name(simulation, most);
  EXPECT_NE(text_of(summary, simulation).find("longest credit wait"), std::string::npos);
}

TEST(InfiniBandScenario, CapturesBeginWithTheLRH) {
  const Parsed<Scenario> scenario = read_infiniband("topology: {kind: star, hosts: 2}\n");
  Simulation simulation(*scenario);
  simulation.capture({0});
  while (simulation.advance()) continue;
  const std::vector<u8>& file = simulation.captured()->file();
  // A packet of 4096 bytes to LID 1 from LID 2: VL and SL 3, BTH behind, 1030 words.
  const std::array<u8, 8> lrh = {0x30, 0x32, 0x00, 0x01, 0x04, 0x06, 0x00, 0x02};
  EXPECT_NE(std::ranges::search(file, lrh).begin(), file.end());
}

}  // namespace
}  // namespace verbena::fabric
