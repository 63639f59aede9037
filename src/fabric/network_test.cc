#include "fabric/network.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace verbena::fabric {
namespace {

struct Recorder final : Trace {
  void on_flow_finished(u32 flow, Time now) override { finished.emplace_back(flow, now); }
  void on_pause_received(NodeIndex node, u32, u32, u32 quanta, Time) override {
    (quanta != 0 ? pauses : resumes).push_back(node);
  }
  std::vector<std::pair<u32, Time>> finished;
  std::vector<NodeIndex> pauses, resumes;
};

// Hosts 0 .. n - 1 on one switch.
Topology star(u32 hosts, const LinkConfig& link = {}) {
  Topology topology;
  for (u32 i = 0; i < hosts; ++i) (void)topology.add_host();
  const NodeIndex hub = topology.add_switch();
  for (NodeIndex host = 0; host < hosts; ++host) topology.join(host, hub, link);
  return topology;
}

struct Star {
  explicit Star(u32 hosts, const NetworkConfig& config = {}, const LinkConfig& link = {})
      : topology(star(hosts, link)), network(topology, config) {
    network.set_trace(&recorder);
  }
  void incast(u64 octets) {
    for (NodeIndex host = 1; host + 1 < topology.nodes; ++host)
      EXPECT_TRUE(network.add_flow({.source = host, .destination = 0, .octets = octets}));
  }
  Topology topology;
  Network network;
  Recorder recorder;
};

NetworkConfig config_with_mtu(MTU mtu) {
  NetworkConfig config;
  config.host = [mtu](const LinkConfig&) {
    HostConfig host;
    host.device.active_mtu = mtu;
    return host;
  };
  return config;
}

// Without ECN; `headroom` of what the standard asks for.
NetworkConfig pfc_config(double headroom, u64 buffer_octets = 1u << 20) {
  NetworkConfig config = config_with_mtu(MTU::k1024);
  config.switches.buffer.size = buffer_octets;
  config.switch_port = [headroom](const LinkConfig& link) {
    SwitchPortConfig port;
    port.marking.enabled = false;
    port.buffer.headroom =
        static_cast<u32>(headroom * headroom_for(link.rate, link.delay, 1024 + 66));
    return port;
  };
  return config;
}

// 66 octets of headers go with each packet, and 16 of RETH with the first.
TEST(Network, OnePacketTakesItsTimeToThePicosecond) {
  Star star(2);
  ASSERT_TRUE(star.network.add_flow({.source = 0, .destination = 1, .octets = 1000}));
  EXPECT_FALSE(star.network.run(Time::from_ns(1'000'000)));
  ASSERT_EQ(star.recorder.finished.size(), 1u);
  const i64 data = (1000 + 50 + 12 + 16) * 80, ack = (50 + 12 + 4) * 80;
  EXPECT_EQ(star.recorder.finished[0].second.ps(), 2 * data + 2 * ack + 4 * 1'000'000);
}

TEST(Network, LongFlowsRunAtLineRate) {
  Star star(2, config_with_mtu(MTU::k4096));
  constexpr u64 kOctets = 40'960'000;  // 10 000 packets
  ASSERT_TRUE(star.network.add_flow({.source = 0, .destination = 1, .octets = kOctets}));
  EXPECT_FALSE(star.network.run(Time::from_ns(1'000'000'000)));
  ASSERT_EQ(star.recorder.finished.size(), 1u);
  const double seconds = static_cast<double>(star.recorder.finished[0].second.ps()) * 1e-12;
  const double line_rate = 100e9 * 4096 / (4096 + 62);
  EXPECT_NEAR(static_cast<double>(kOctets) * 8 / seconds / line_rate, 1, 0.002);
}

TEST(Network, EveryFlowEndsAndEveryFrameIsAccountedFor) {
  Star star(5, pfc_config(1));
  for (NodeIndex from = 0; from < 5; ++from)
    for (NodeIndex to = 0; to < 5; ++to)
      if (from != to) {
        ASSERT_TRUE(star.network.add_flow(
            {.source = from, .destination = to, .octets = 100'000 * (to + 1u)}));
      }
  EXPECT_FALSE(star.network.run(Time::from_ns(1'000'000'000)));
  EXPECT_EQ(star.recorder.finished.size(), 20u);
  EXPECT_EQ(star.network.flows_finished(), 20u);
  EXPECT_EQ(star.network.frames_in_flight(), 0u);
  EXPECT_EQ(star.network.counters().drops, 0u);
}

TEST(Network, NothingIsLostWithTheHeadroomOfTheStandard) {
  Star star(9, pfc_config(1));
  star.incast(2'000'000);
  EXPECT_FALSE(star.network.run(Time::from_ns(1'000'000'000)));
  EXPECT_EQ(star.recorder.finished.size(), 8u);
  EXPECT_GT(star.network.counters().pauses, 0u);
  EXPECT_EQ(star.network.counters().drops, 0u);
}

TEST(Network, FramesAreLostWithLessHeadroomAndSentAgain) {
  Star star(9, pfc_config(0.5));
  star.incast(2'000'000);
  EXPECT_FALSE(star.network.run(Time::from_ns(10'000'000'000)));
  EXPECT_EQ(star.recorder.finished.size(), 8u);
  EXPECT_GT(star.network.counters().drops, 0u);
  EXPECT_EQ(star.network.frames_in_flight(), 0u);
}

TEST(Network, FlowsShareABottleneckEvenly) {
  Star star(9, pfc_config(1, 8u << 20));
  star.incast(4'000'000);
  EXPECT_FALSE(star.network.run(Time::from_ns(1'000'000'000)));
  ASSERT_EQ(star.recorder.finished.size(), 8u);
  const i64 first = star.recorder.finished.front().second.ps();
  const i64 last = star.recorder.finished.back().second.ps();
  EXPECT_LT(static_cast<double>(last - first) / static_cast<double>(last), 0.02);
}

// A pause that lasts shorter than the congestion is asked for again, and nothing is lost.
TEST(Network, ShortPausesAreRefreshed) {
  NetworkConfig config = pfc_config(1);
  config.switches.pfc.quanta = 2000;  // 10.24 us at 100 Gb/s
  Star star(9, config);
  star.incast(2'000'000);
  EXPECT_FALSE(star.network.run(Time::from_ns(1'000'000'000)));
  EXPECT_EQ(star.recorder.finished.size(), 8u);
  EXPECT_EQ(star.network.counters().drops, 0u);
  EXPECT_GT(star.recorder.pauses.size(), star.recorder.resumes.size());
}

TEST(Network, LinksThatLoseFrames) {
  Star star(3, config_with_mtu(MTU::k1024), {.error_rate = 0.001});
  star.incast(3'000'000);
  EXPECT_FALSE(star.network.run(Time::from_ns(60'000'000'000)));
  EXPECT_EQ(star.recorder.finished.size(), 2u);
  EXPECT_GT(star.network.counters().lost, 0u);
  EXPECT_EQ(star.network.frames_in_flight(), 0u);
}

// ECN marks, CNPs and rates: the same seed gives the same course, another one another.
std::vector<i64> finish_times(u64 seed) {
  NetworkConfig config;
  config.seed = seed;
  config.host = [](const LinkConfig& link) {
    HostConfig host;
    host.device.congestion.algorithm = DCQCNParameters{.line_rate = link.rate};
    return host;
  };
  Star star(5, config);
  star.incast(5'000'000);
  EXPECT_FALSE(star.network.run(Time::from_ns(1'000'000'000)));
  EXPECT_GT(star.network.counters().marks, 0u);
  std::vector<i64> times;
  for (const auto& [flow, at] : star.recorder.finished) times.push_back(at.ps());
  return times;
}

TEST(Network, ASeedIsACourse) {
  const std::vector<i64> first = finish_times(1);
  EXPECT_EQ(first.size(), 4u);
  EXPECT_EQ(finish_times(1), first);
  EXPECT_NE(finish_times(2), first);
}

TEST(Network, NoWayIsSaid) {
  Topology topology = star(2);
  const NodeIndex alone = topology.add_host(), other = topology.add_host();
  topology.join(alone, other, {});
  Network network(topology, {});
  EXPECT_FALSE(network.add_flow({.source = 0, .destination = alone, .octets = 1}));
  EXPECT_TRUE(network.add_flow({.source = other, .destination = alone, .octets = 1}));
}

TEST(Network, StopsAtTheEndAndGoesOn) {
  Star star(2);
  ASSERT_TRUE(star.network.add_flow({.source = 0, .destination = 1, .octets = 1'000'000}));
  EXPECT_TRUE(star.network.run(Time::from_ns(50'000)));
  EXPECT_TRUE(star.recorder.finished.empty());
  EXPECT_GT(star.network.frames_in_flight(), 0u);
  EXPECT_FALSE(star.network.run(Time::never()));
  EXPECT_EQ(star.recorder.finished.size(), 1u);
}

// The largest message is cut into several, and an empty one is a message too.
TEST(Network, MessagesOfAnyLength) {
  Star star(2, config_with_mtu(MTU::k4096), {.rate = gbps(800)});
  ASSERT_TRUE(star.network.add_flow({.source = 0, .destination = 1, .octets = 0}));
  EXPECT_EQ(star.network.host(0).messages_of(0), 1u);
  EXPECT_EQ(star.network.host(0).messages_of(1u << 30), 1u);
  EXPECT_EQ(star.network.host(0).messages_of((1u << 30) + 1), 2u);
  EXPECT_FALSE(star.network.run(Time::from_ns(1'000'000)));
  EXPECT_EQ(star.recorder.finished.size(), 1u);
}

}  // namespace
}  // namespace verbena::fabric
