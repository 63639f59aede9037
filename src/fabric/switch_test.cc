// Switches by what networks of them do.
#include "fabric/switch.h"

#include "fabric/testing.h"

namespace verbena::fabric {
namespace {

using test::incast;
using test::pfc_alone;
using test::star;

NetworkConfig with_marking(const MarkingConfig& marking) {
  NetworkConfig config = pfc_alone();
  config.switch_port = [marking](const LinkConfig& link) {
    return SwitchPortConfig{.buffer = {.headroom = headroom_for(link.rate, link.delay, 1024 + 66)},
                            .marking = marking};
  };
  return config;
}

// Hosts 0 .. n - 1 on one leaf, n .. 2n - 1 on the other, two spines between them: nodes 2n + 2 and
// 2n + 3.
Topology two_leaves(u32 hosts_each) {
  Topology topology;
  for (u32 i = 0; i < 2 * hosts_each; ++i) (void)topology.add_host();
  const NodeIndex left = topology.add_switch(), right = topology.add_switch();
  const NodeIndex spines[] = {topology.add_switch(), topology.add_switch()};
  for (u32 i = 0; i < hosts_each; ++i) topology.join(i, left, {});
  for (u32 i = 0; i < hosts_each; ++i) topology.join(hosts_each + i, right, {});
  for (const NodeIndex spine : spines) {
    topology.join(left, spine, {});
    topology.join(right, spine, {});
  }
  return topology;
}

// All flows end.
struct Ended : test::Course {
  Ended(Topology t, const NetworkConfig& config, const std::vector<Flow>& flows)
      : test::Course(std::move(t), config, flows) {
    EXPECT_EQ(ends.finished.size(), flows.size());
  }
};

// One packet of 1000 bytes over two links of 100 Gb/s, and its acknowledgement: sizes as in
// network_test.cc.
constexpr i64 kData = (1000 + 50 + 12 + 16) * 80, kAck = (50 + 12 + 4) * 80, kHead = 64 * 80;
constexpr i64 kWay = 4 * 1'000'000;

i64 picoseconds_of_one_packet(const ForwardingConfig& forwarding, Rate way_out = gbps(100)) {
  NetworkConfig config = pfc_alone();
  config.switches.forwarding = forwarding;
  Topology topology;
  for (int i = 0; i < 2; ++i) (void)topology.add_host();
  (void)topology.add_switch();
  topology.join(0, 2, {});
  topology.join(1, 2, {.rate = way_out});
  Ended run(std::move(topology), config, {{.source = 0, .destination = 1, .bytes = 1000}});
  return run.ends.finished.at(0).ps();
}

TEST(SwitchForwarding, ALatencyIsAddedOnceEachWay) {
  EXPECT_EQ(picoseconds_of_one_packet({.latency = ns(400)}),
            2 * kData + 2 * kAck + kWay + 2 * 400'000);
}

TEST(SwitchForwarding, CutThroughWaitsForTheHeadAlone) {
  EXPECT_EQ(picoseconds_of_one_packet({.mode = ForwardingConfig::Mode::kCutThrough}),
            kHead + kData + kHead + kAck + kWay);
}

// Out at 400 Gb/s: the whole frame is waited for. The acknowledgement comes back at that rate, and
// cuts through.
TEST(SwitchForwarding, AFasterWayOutIsNoneToCutThrough) {
  EXPECT_EQ(picoseconds_of_one_packet({.mode = ForwardingConfig::Mode::kCutThrough}, gbps(400)),
            kData + kData / 4 + kHead / 4 + kAck + kWay);
}

// Two flows of 5 MB to one host, in two priorities; alone one takes 420 us.
std::vector<Flow> two_priorities() {
  return {{.source = 1, .destination = 0, .bytes = 5'000'000, .priority = 3},
          {.source = 2, .destination = 0, .bytes = 5'000'000, .priority = 5}};
}

TEST(SwitchQueues, AStrictPriorityGoesFirst) {
  NetworkConfig config = pfc_alone();
  config.switches.discipline.strict = 1 << 5;
  Ended run(star(3), config, two_priorities());
  EXPECT_NEAR(run.microseconds(1), 430, 15);
  EXPECT_NEAR(run.microseconds(0), 850, 25);
}

TEST(SwitchQueues, QuantaShareTheLink) {
  NetworkConfig config = pfc_alone();
  config.switches.discipline.quantum[3] = 2000;
  config.switches.discipline.quantum[5] = 6000;
  Ended run(star(3), config, two_priorities());
  EXPECT_NEAR(run.microseconds(1), 425 * 4 / 3.0, 25);  // three quarters of the link
  EXPECT_NEAR(run.microseconds(0), 850, 25);
}

// Thresholds of nothing, and a queue that is never longer than the frame that goes through it.
TEST(SwitchMarking, AtEnqueueTheFrameItselfCounts) {
  for (const MarkAt at : {MarkAt::kEnqueue, MarkAt::kDequeue}) {
    NetworkConfig config = with_marking({.k_min = 0, .k_max = 0});
    config.switches.mark_at = at;
    Ended run(star(2), config, {{.source = 0, .destination = 1, .bytes = 100'000}});
    EXPECT_EQ(run.network.counters().marks > 0, at == MarkAt::kEnqueue);
  }
}

TEST(SwitchMarking, OnlyPrioritiesThatAreLookedAt) {
  NetworkConfig config = with_marking({.k_min = 0, .k_max = 0, .priorities = 1 << 4});
  config.switches.mark_at = MarkAt::kEnqueue;
  Ended run(star(2), config, {{.source = 0, .destination = 1, .bytes = 100'000}});
  EXPECT_EQ(run.network.counters().marks, 0u);
}

TEST(SwitchMarking, WhoDoesNotKnowECNLosesInstead) {
  NetworkConfig config =
      with_marking({.k_min = 50'000, .k_max = 200'000, .not_ect = MarkingConfig::NotECT::kDrop});
  config.host = [](const LinkConfig&) {
    HostConfig host;
    host.device.active_mtu = MTU::k1024;
    host.traffic_class = 0;
    return host;
  };
  Ended run(star(4), config, incast(3, 500'000));
  EXPECT_GT(run.network.counters().early_drops, 0u);
  EXPECT_EQ(run.network.counters().drops, 0u);
  EXPECT_EQ(run.network.counters().marks, 0u);
}

TEST(SwitchMarking, AnAverageIsSlowerThanTheQueue) {
  const auto marks = [](double weight) {
    Ended run(star(3), with_marking({.k_min = 100'000, .k_max = 100'000, .weight = weight}),
              incast(2, 400'000));
    return run.network.counters().marks;
  };
  EXPECT_GT(marks(1), marks(0.002));
}

TEST(SwitchPFC, PrioritiesWithoutItLose) {
  NetworkConfig config = pfc_alone();
  config.switches.buffer.size = 1u << 20;
  config.switches.pfc.priorities = static_cast<u8>(~(1u << 3));
  Ended run(star(5), config, incast(4, 1'000'000));
  EXPECT_EQ(run.network.counters().pauses, 0u);
  EXPECT_GT(run.network.counters().drops, 0u);
}

// Eight QPs between two hosts, with one source port: the hash sees one flow, or eight.
u32 uplinks_used(SpreadingConfig::Kind kind) {
  NetworkConfig config = pfc_alone();
  config.switches.spreading.kind = kind;
  std::vector<Flow> flows;
  for (int i = 0; i < 8; ++i)
    flows.push_back({.source = 0,
                     .destination = 1,
                     .bytes = 200'000,
                     .source_port = 1000,
                     .destination_port = 100});
  Ended run(two_leaves(1), config, flows);
  u32 used = 0;
  run.network.for_each_longest_queue([&](NodeIndex node, u32 port, u32 bytes) {
    used += node == 2 && port != 0 && bytes > 1000 ? 1 : 0;  // that data took
  });
  return used;
}

using Kind = SpreadingConfig::Kind;

TEST(SwitchWays, FlowsKeepTheirsAndQPsSpreadIfAsked) {
  EXPECT_EQ(uplinks_used(Kind::kFlowHash), 1u);
  EXPECT_EQ(uplinks_used(Kind::kFlowAndQPHash), 2u);
  EXPECT_EQ(uplinks_used(Kind::kPacketSpray), 2u);
  EXPECT_EQ(uplinks_used(Kind::kLeastLoaded), 1u);  // one link feeds them: no queue is longer
}

// Four flows from one leaf to the other, over two uplinks. Whatever the order in which frames
// arrive, all that was sent arrives.
TEST(SwitchWays, ReorderedFlowsEndToo) {
  for (const Kind kind : {Kind::kPacketSpray, Kind::kFlowlet, Kind::kLeastLoaded}) {
    NetworkConfig config = pfc_alone();
    config.switches.spreading.kind = kind;
    std::vector<Flow> flows;
    for (NodeIndex i = 0; i < 4; ++i)
      flows.push_back({.source = i, .destination = 4 + i, .bytes = 300'000});
    Ended run(two_leaves(4), config, flows);
    EXPECT_EQ(run.network.counters().drops, 0u);
  }
}

}  // namespace
}  // namespace verbena::fabric
