#include "fabric/hpcc_ns3/scenario.h"

#include <gtest/gtest.h>

#include <string>

#include "fabric/hpcc_ns3/results.h"

namespace verbena::fabric::hpcc_ns3 {
namespace {

constexpr std::string_view kTopology =
    "3 1 2\n2\n0 2 100Gbps 1000ns 0.000000\n1 2 100Gbps 1000ns 0.000000\n";
constexpr std::string_view kConfig =
    "ENABLE_QCN 1\nTOPOLOGY_FILE topology.txt\nFLOW_FILE flow.txt\nSIMULATOR_STOP_TIME 2.01\n"
    "CC_MODE 1\nRATE_AI 20Mb/s\nLINK_DOWN 0 0 0\nKMAX_MAP 1 100000000000 1600\n"
    "KMIN_MAP 1 100000000000 400\nPMAX_MAP 1 100000000000 0.2\nBUFFER_SIZE 32\n"
    "SOMETHING_ELSE a b c\nACK_HIGH_PRIO 1\nHAS_WIN 0\n";

Scenario scenario_of(std::string_view topology, std::string_view flows,
                     std::string_view config = kConfig) {
  Scenario scenario;
  scenario.config = parse_config("config.txt", config).value();
  scenario.topology = parse_topology("topology.txt", topology).value();
  scenario.flows = parse_flows("flow.txt", flows, scenario.topology).value();
  EXPECT_EQ(check(scenario), "");
  return scenario;
}

struct SimulatedRun {
  explicit SimulatedRun(Scenario s)
      : scenario(std::move(s)), network(scenario.topology, network_config(scenario, 1)) {
    network.set_trace(&results);
    for (const Flow& flow : scenario.flows) EXPECT_TRUE(network.add_flow(flow));
    (void)network.run(Time() + scenario.config.stop);
  }
  Scenario scenario;
  Network network;
  Results results{scenario, network};
};

std::string error_of(const auto& parsed) { return parsed ? "" : parsed.error().message; }

TEST(HpccConfig, ReadsWhatItKnows) {
  const Config config = parse_config("config.txt", kConfig).value();
  EXPECT_TRUE(config.ecn);
  EXPECT_EQ(config.stop, ns(2'009'999'999));
  EXPECT_EQ(config.additive_increase, mbps(20));
  EXPECT_EQ(config.k_max.at(100'000'000'000), 1600u);
  EXPECT_EQ(config.p_max.at(100'000'000'000), 0.2);
  EXPECT_EQ(config.buffer_mib, 32u);
  EXPECT_TRUE(config.acknowledgements_first);
}

TEST(HpccConfig, SaysWhatIsWrongAndWhere) {
  EXPECT_NE(error_of(parse_config("c", "ENABLE_QCN 1\nCC_MODE 10\n")).find("c:2: CC_MODE: not"),
            std::string::npos);
  EXPECT_NE(error_of(parse_config("c", "LINK_DOWN 2000 1 x")), "");
  EXPECT_EQ(error_of(parse_config("c", "\nBUFFER_SIZE x")),
            "c:2: BUFFER_SIZE: its value makes no sense");
  EXPECT_NE(error_of(parse_config("c", "KMAX_MAP 2 1 1")), "");
  EXPECT_NE(error_of(parse_config("c", "PACKET_PAYLOAD_SIZE 0")), "");
}

TEST(HpccConfig, TellsWhatItRunsOtherwise) {
  const auto told = [](std::string_view text) {
    return differences(parse_config("c", text).value()).size();
  };
  EXPECT_EQ(told(kConfig), 0u);
  EXPECT_EQ(told("CC_MODE 3\nSAMPLE_FEEDBACK 1"), 1u);
  EXPECT_EQ(told("CC_MODE 1\nSAMPLE_FEEDBACK 1"), 0u);  // HPCC's
  EXPECT_EQ(told("L2_BACK_TO_ZERO 1"), 1u);
  EXPECT_EQ(told("L2_ACK_INTERVAL 0"), 1u);
  EXPECT_EQ(told("L2_ACK_INTERVAL 4000"), 1u);
  EXPECT_EQ(told("L2_ACK_INTERVAL 4000\nPACKET_PAYLOAD_SIZE 4000"), 0u);
}

// That model reads words: lines mean nothing to it, and a fraction ends a whole number.
TEST(HpccConfig, ReadsWordsAsThatModel) {
  const Config config = parse_config("c",
                                     "TRACE_FILE t CC_MODE\r\n\r\n  3 BUFFER_SIZE 12.0\r\n"
                                     "INT_MULTI\t4.0\r\n# MI_THRESH 7")
                            .value();
  EXPECT_EQ(config.control, Control::kHPCC);
  EXPECT_EQ(config.buffer_mib, 12u);
  EXPECT_EQ(config.telemetry_unit, 4u);
  EXPECT_EQ(config.max_stage, 7u);
  EXPECT_EQ(config.stop, ns(3'010'000'000));
  EXPECT_NE(error_of(parse_config("c", "BUFFER_SIZE 12.x")), "");
  EXPECT_NE(error_of(parse_config("c", "BUFFER_SIZE 12x")), "");
}

TEST(HpccConfig, Units) {
  EXPECT_EQ(parse_rate("25Gbps"), gbps(25));
  EXPECT_EQ(parse_rate("0.5Gb/s"), mbps(500));
  EXPECT_EQ(parse_rate("100"), Rate::from_bps(100));
  EXPECT_EQ(parse_rate("0Gbps"), std::nullopt);
  EXPECT_EQ(parse_rate("-1Gbps"), std::nullopt);
  EXPECT_EQ(parse_rate("1GB"), std::nullopt);
  EXPECT_EQ(parse_delay("1000ns"), us(1));
  EXPECT_EQ(parse_delay("0.001ms"), us(1));
  EXPECT_EQ(parse_delay("1e-6"), ns(999));  // a double is a little less
  EXPECT_EQ(parse_delay("0.3us"), ns(299));
  EXPECT_EQ(parse_delay("1.5us"), ns(1500));
  EXPECT_EQ(parse_delay("1 h"), std::nullopt);
  EXPECT_EQ(parse_delay("nan"), std::nullopt);
}

TEST(HpccTopology, SaysWhatIsWrongAndWhere) {
  EXPECT_NE(error_of(parse_topology("t", "")), "");
  EXPECT_NE(error_of(parse_topology("t", "3 4 0")), "");
  EXPECT_NE(error_of(parse_topology("t", "3 1 1\n5\n")).find("t:2"), std::string::npos);
  EXPECT_NE(error_of(parse_topology("t", "3 1 1\n2\n0 9 1Gbps 1us 0")).find("t:3"),
            std::string::npos);
  EXPECT_NE(error_of(parse_topology("t", "3 1 1\n2\n0 2 1Gbps 1us 2")), "");
  EXPECT_NE(error_of(parse_topology("t", "3 1 1\n2\n0 0 1Gbps 1us 0")).find("linked to itself"),
            std::string::npos);
  EXPECT_NE(error_of(parse_topology("t", "4000000000 1 1")), "");
}

TEST(HpccFlows, SourcePortsAreOfEachPair) {
  const Topology topology = parse_topology("t", kTopology).value();
  const auto flows =
      parse_flows("f", "3\n1 0 3 100 1 2.0\n0 1 3 100 1 2.0002\n1 0 3 100 1 2\n", topology).value();
  EXPECT_EQ(flows[0].source_port, 10000);
  EXPECT_EQ(flows[1].source_port, 10000);
  EXPECT_EQ(flows[2].source_port, 10001);
  EXPECT_EQ(flows[1].start.ns(), 2'000'199'999);
  EXPECT_NE(error_of(parse_flows("f", "1\n1 2 3 100 1 2.0", topology)), "");  // a switch
  EXPECT_NE(error_of(parse_flows("f", "1\n1 1 3 100 1 2.0", topology)), "");
  EXPECT_NE(error_of(parse_flows("f", "1\n1 0 9 100 1 2.0", topology)), "");
  EXPECT_NE(error_of(parse_flows("f", "2\n1 0 3 100 1 2.0", topology)).find("f:2"),
            std::string::npos);
}

TEST(HpccFlows, OneOfNoBytesIsLeftOut) {
  const Topology topology = parse_topology("t", kTopology).value();
  const auto flows = parse_flows("f", "2\n1 0 3 100 0 2.0\n1 0 3 100 1 2.0", topology).value();
  ASSERT_EQ(flows.size(), 1u);
  EXPECT_EQ(flows[0].source_port, 10001);
}

TEST(HpccScenario, NeedsThresholdsForItsRates) {
  Scenario scenario = scenario_of(kTopology, "0");
  scenario.config.k_min.clear();
  EXPECT_NE(check(scenario).find("100000000000"), std::string::npos);
  scenario.config.ecn = false;
  EXPECT_EQ(check(scenario), "");
}

// The settings of that model's own script (run.py) for each control: flows end, nothing is lost,
// the bottleneck is used, and the queue is what the control lets it be.
struct ControlCase {
  std::string name, config;
  double most_of_ideal;  // how much longer than without headers and start it may take
  u32 longest_queue;
};

class HpccControls : public ::testing::TestWithParam<ControlCase> {};

TEST_P(HpccControls, ShareABottleneck) {
  std::string topology = "9 1 8\n8\n", flows = "7\n";
  for (u32 host = 0; host < 8; ++host) topology += std::to_string(host) + " 8 100Gbps 1000ns 0\n";
  for (u32 host = 1; host < 8; ++host) flows += std::to_string(host) + " 0 3 100 2000000 2.0\n";
  const SimulatedRun run(
      scenario_of(topology, flows, std::string(kConfig) + "ACK_HIGH_PRIO 0\n" + GetParam().config));
  u32 longest = 0;
  run.network.for_each_longest_queue(
      [&](NodeIndex, u32, u32 bytes) { longest = std::max(longest, bytes); });
  EXPECT_EQ(run.network.flows_finished(), 7u);
  EXPECT_EQ(run.network.counters().drops, 0u);
  EXPECT_LE(longest, GetParam().longest_queue);
  const double ideal = 7 * 2e6 * 8 / 100;  // ns
  const auto last = static_cast<double>(run.results.last_end().ns()) - 2e9;
  EXPECT_LT(last, ideal * GetParam().most_of_ideal);
}

INSTANTIATE_TEST_SUITE_P(
    All, HpccControls,
    ::testing::Values(
        ControlCase{"Window", "CC_MODE 0\nHAS_WIN 1\nVAR_WIN 0\n", 1.06, 7 * 52'000},
        ControlCase{"DCQCNWithWindow",
                    "CC_MODE 1\nALPHA_RESUME_INTERVAL 1\nRP_TIMER 300\nEWMA_GAIN 0.00390625\n"
                    "HAS_WIN 1\nVAR_WIN 1\nRATE_HAI 200Mb/s\nFAST_RECOVERY_TIMES 1\n",
                    1.5, 7 * 52'000},
        ControlCase{"HPCC",
                    "CC_MODE 3\nHAS_WIN 1\nVAR_WIN 1\nFAST_REACT 1\nMI_THRESH 0\nINT_MULTI 4\n"
                    "RATE_AI 40Mb/s\nMULTI_RATE 0\n",
                    1.25, 7 * 52'000},
        ControlCase{"HPCCOnceARoundTrip",
                    "CC_MODE 3\nHAS_WIN 1\nVAR_WIN 0\nFAST_REACT 0\nMI_THRESH 5\nMULTI_RATE 1\n"
                    "RATE_AI 40Mb/s\n",
                    1.4, 7 * 52'000},
        ControlCase{"TIMELY",
                    "CC_MODE 7\nHAS_WIN 1\nVAR_WIN 1\nRATE_AI 100Mb/s\nRATE_HAI 500Mb/s\n", 2,
                    7 * 52'000},
        ControlCase{"DCTCP",
                    "CC_MODE 8\nHAS_WIN 1\nVAR_WIN 1\nEWMA_GAIN 0.0625\nDCTCP_RATE_AI 615Mb/s\n"
                    "KMAX_MAP 1 100000000000 300\nKMIN_MAP 1 100000000000 300\n"
                    "PMAX_MAP 1 100000000000 1\n",
                    1.3, 7 * 52'000}),
    [](const auto& test) { return test.param.name; });

TEST(HpccScenario, OneRoundTripForAllPairsOrNone) {
  const std::string config = std::string(kConfig) + "HAS_WIN 1\nGLOBAL_T 0\n";
  Scenario scenario = scenario_of(kTopology, "0", config);  // all pairs are alike
  scenario.topology.links[0].config.delay = us(2);
  EXPECT_EQ(check(scenario), "");  // two hosts, one pair
  (void)scenario.topology.add_host();
  scenario.topology.join(3, 2, {.delay = us(1)});
  EXPECT_NE(check(scenario).find("GLOBAL_T"), std::string::npos);
}

TEST(HpccScenario, ALinkGoesDown) {
  // Two ways between the hosts' switches; each goes down in turn, and the flow has one of them.
  const std::string_view topology =
      "6 4 6\n2 3 4 5\n0 2 100Gbps 1000ns 0\n1 3 100Gbps 1000ns 0\n2 4 100Gbps 1000ns 0\n"
      "4 3 100Gbps 1000ns 0\n2 5 100Gbps 1000ns 0\n5 3 100Gbps 1000ns 0\n";
  u64 lost = 0;
  for (const std::string_view link : {"2 4", "2 5"}) {
    const SimulatedRun run(scenario_of(topology, "1\n0 1 3 100 1000000 2.0\n",
                                       std::string(kConfig) + "LINK_DOWN 20 " + std::string(link)));
    EXPECT_EQ(run.network.flows_finished(), 1u);
    lost += run.network.counters().lost();
  }
  EXPECT_GE(lost, 11u);
  Scenario scenario = scenario_of(topology, "0");
  scenario.config.link_down = LinkDown{.after = us(1), .a = 0, .b = 1};
  EXPECT_NE(check(scenario).find("LINK_DOWN"), std::string::npos);
}

// Measured in that model.
TEST(HpccScenario, AloneToTheNanosecond) {
  const SimulatedRun run(
      scenario_of(kTopology,
                  "7\n1 0 3 100 1 2.0\n1 0 3 100 100 2.0001\n1 0 3 100 1000 2.0002\n"
                  "1 0 3 100 1001 2.0003\n1 0 3 100 10000 2.0004\n1 0 3 100 100000 2.0005\n"
                  "1 0 3 100 1000000 2.0006\n"));
  EXPECT_EQ(run.results.fct(),
            "0b000101 0b000001 10000 100 1 2000000000 4014 4163\n"
            "0b000101 0b000001 10001 100 100 2000100000 4030 4171\n"
            "0b000101 0b000001 10002 100 1000 2000199999 4174 4243\n"
            "0b000101 0b000001 10003 100 1001 2000300000 4178 4247\n"
            "0b000101 0b000001 10004 100 10000 2000399999 4921 4998\n"
            "0b000101 0b000001 10005 100 100000 2000500000 12391 12544\n"
            "0b000101 0b000001 10006 100 1000000 2000599999 87091 88000\n");
  EXPECT_EQ(run.results.pfc(), "");
}

// incast8_dcqcnpaper of tests/reference: eight senders of 10 MB, DCQCN with the paper's timers. The
// mean rate of those that still send, in Gb/s, measured in that model in one run: first what the
// CNPs of all do alike, then what chance makes of it, as means of some time.
TEST(HpccScenario, RatesFollowTheirCourse) {
  const std::string config =
      std::string(kConfig) +
      "SIMULATOR_STOP_TIME 2.03\nALPHA_RESUME_INTERVAL 50\nRATE_DECREASE_INTERVAL 50\n"
      "RP_TIMER 55\nEWMA_GAIN 0.00390625\nFAST_RECOVERY_TIMES 1\nRATE_AI 20Mb/s\n"
      "RATE_HAI 200Mb/s\nMIN_RATE 1000Mb/s\nCLAMP_TARGET_RATE 0\n";
  std::string topology = "10 1 9\n9\n0 9 100Gbps 1000ns 0\n", flows = "8\n";
  for (u32 host = 1; host <= 8; ++host) {
    topology += std::to_string(host) + " 9 100Gbps 1000ns 0\n";
    flows += std::to_string(host) + " 0 3 100 10000000 2.0\n";
  }
  const Scenario scenario = scenario_of(topology, flows, config);
  Network network(scenario.topology, network_config(scenario, 1));
  for (const Flow& flow : scenario.flows) ASSERT_TRUE(network.add_flow(flow));
  const auto mean_at = [&](i64 microseconds) {
    (void)network.run(Time::from_ns(2'000'000'000 + microseconds * 1000));
    double sum = 0;
    u32 active = 0;
    for (u32 flow = 0; flow < 8; ++flow)
      if (const std::optional<Rate> rate = network.rate_of(flow)) {
        sum += static_cast<double>(rate->bps()) * 1e-9;
        ++active;
      }
    return sum / active;
  };
  constexpr std::pair<i64, double> kAlike[] = {{12, 100},   {48, 100},    {84, 50}, {96, 50},
                                               {180, 12.5}, {300, 3.125}, {420, 1}, {900, 1}};
  for (const auto& [at, rate] : kAlike) EXPECT_NEAR(mean_at(at), rate, 0.1 * rate) << at;
  double sum = 0;
  for (i64 at = 1200; at <= 6000; at += 100) sum += mean_at(at) / 49;
  EXPECT_NEAR(sum, 12.05, 1.205);
}

// All that is marked is what is above 400 kB, so that nothing is left to chance. Measured in that
// model. Two senders of 900 kB: an acknowledgement comes just when a port is free again, and the
// next packet may not go yet.
TEST(HpccScenario, DCQCNWithoutChanceToTheNanosecond) {
  const std::string config =
      std::string(kConfig) +
      "SIMULATOR_STOP_TIME 2.05\nKMAX_MAP 1 100000000000 400\nPMAX_MAP 1 100000000000 1\n"
      "ALPHA_RESUME_INTERVAL 1\nRATE_DECREASE_INTERVAL 4\nRP_TIMER 300\nEWMA_GAIN 0.00390625\n"
      "FAST_RECOVERY_TIMES 1\nRATE_HAI 200Mb/s\nMIN_RATE 1000Mb/s\n";
  const SimulatedRun two(
      scenario_of("4 1 3\n3\n0 3 100Gbps 1000ns 0\n1 3 100Gbps 1000ns 0\n2 3 100Gbps 1000ns 0\n",
                  "2\n1 0 3 100 900000 2\n2 0 3 100 900000 2\n", config));
  EXPECT_EQ(two.results.fct(),
            "0b000101 0b000001 10000 100 900000 2000000000 418262 79616\n"
            "0b000201 0b000001 10000 100 900000 2000000000 418345 79616\n");
  // A host with a flow that is slowed down and one that is not: they take turns.
  std::string topology = "9 1 8\n8\n";
  for (u32 host = 0; host < 8; ++host) topology += std::to_string(host) + " 8 100Gbps 1000ns 0\n";
  const SimulatedRun three(scenario_of(
      topology, "3\n1 0 3 100 2000000 2\n2 0 3 100 2000000 2\n1 7 3 100 1500000 2\n", config));
  EXPECT_EQ(three.results.fct(),
            "0b000101 0b000701 10000 100 1500000 2000000000 169676 129920\n"
            "0b000201 0b000001 10000 100 2000000 2000000000 555134 171840\n"
            "0b000101 0b000001 10000 100 2000000 2000000000 623071 171840\n");
}

// Two senders of 10 MB, 2 MB of buffer, no ECN. Measured in that model: both end at 1664008 and
// 1664091 ns, 344 pauses, 429680 bytes in the longest queue, the first pauses after 33875 ns.
TEST(HpccScenario, PausesExactly) {
  const std::string config = std::string(kConfig) + "ENABLE_QCN 0\nBUFFER_SIZE 2\n";
  const SimulatedRun run(
      scenario_of("4 1 3\n3\n0 3 100Gbps 1000ns 0\n1 3 100Gbps 1000ns 0\n2 3 100Gbps 1000ns 0\n",
                  "2\n1 0 3 100 10000000 2.0\n2 0 3 100 10000000 2.0\n", config));
  const std::string fct = run.results.fct();
  EXPECT_NE(fct.find(" 1664008 "), std::string::npos) << fct;
  EXPECT_NE(fct.find(" 1664091 "), std::string::npos) << fct;
  EXPECT_TRUE(
      run.results.pfc().starts_with("2000033875 2 0 1 1\n2000033958 1 0 1 1\n"
                                    "2000038523 2 0 1 0\n"));
  EXPECT_EQ(run.network.counters().pauses, 344u);
  EXPECT_EQ(run.network.counters().drops, 0u);
  const std::string summary = run.results.summary({});
  EXPECT_NE(summary.find(" hops 80688 "), std::string::npos);
  EXPECT_NE(summary.find("\nMAXQ node 3 port 1 bytes 429680\n"), std::string::npos);
}

}  // namespace
}  // namespace verbena::fabric::hpcc_ns3
