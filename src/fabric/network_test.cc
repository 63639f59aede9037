#include "fabric/network.h"

#include <array>
#include <memory>
#include <string>

#include "fabric/testing.h"

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

struct Star {
  explicit Star(u32 hosts, const NetworkConfig& config = {}, const LinkConfig& link = {})
      : topology(test::star(hosts, link)), network(topology, config) {
    network.set_trace(&recorder);
  }
  void incast(u64 bytes) {
    for (NodeIndex host = 1; host + 1 < topology.nodes; ++host)
      EXPECT_TRUE(network.add_flow({.source = host, .destination = 0, .bytes = bytes}));
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

NetworkConfig pfc_config(double headroom, u64 buffer_bytes = 1u << 20) {
  NetworkConfig config = test::pfc_alone(headroom);
  config.switches.buffer.size = buffer_bytes;
  return config;
}

// 66 bytes of headers go with each packet, and 16 of RETH with the first.
TEST(Network, OnePacketTakesItsTimeToThePicosecond) {
  Star star(2);
  ASSERT_TRUE(star.network.add_flow({.source = 0, .destination = 1, .bytes = 1000}));
  EXPECT_FALSE(star.network.run(Time::from_ns(1'000'000'000)));  // with ACK timers
  ASSERT_EQ(star.recorder.finished.size(), 1u);
  const i64 data = (1000 + 50 + 12 + 16) * 80, ack = (50 + 12 + 4) * 80;
  EXPECT_EQ(star.recorder.finished[0].second.ps(), 2 * data + 2 * ack + 4 * 1'000'000);
}

TEST(Network, LongFlowsRunAtLineRate) {
  Star star(2, config_with_mtu(MTU::k4096));
  constexpr u64 kBytes = 40'960'000;  // 10 000 packets
  ASSERT_TRUE(star.network.add_flow({.source = 0, .destination = 1, .bytes = kBytes}));
  EXPECT_FALSE(star.network.run(Time::from_ns(1'000'000'000)));
  ASSERT_EQ(star.recorder.finished.size(), 1u);
  const double seconds = static_cast<double>(star.recorder.finished[0].second.ps()) * 1e-12;
  const double line_rate = 100e9 * 4096 / (4096 + 62);
  EXPECT_NEAR(static_cast<double>(kBytes) * 8 / seconds / line_rate, 1, 0.002);
}

TEST(Network, EveryFlowEndsAndEveryFrameIsAccountedFor) {
  Star star(5, pfc_config(1));
  for (NodeIndex from = 0; from < 5; ++from)
    for (NodeIndex to = 0; to < 5; ++to)
      if (from != to) {
        ASSERT_TRUE(star.network.add_flow(
            {.source = from, .destination = to, .bytes = 100'000 * (to + 1u)}));
      }
  EXPECT_FALSE(star.network.run(Time::from_ns(1'000'000'000)));
  EXPECT_EQ(star.recorder.finished.size(), 20u);
  EXPECT_EQ(star.network.flows_finished(), 20u);
  EXPECT_EQ(star.network.frames_in_flight(), 0u);
  EXPECT_EQ(star.network.counters().drops, 0u);
}

// At any time a frame is where it was sent to, counted where it was lost, or on its way. Without
// pauses all frames are of devices.
TEST(Network, NoFrameIsLostUncounted) {
  NetworkConfig config = pfc_config(0, 200'000);
  config.switches.pfc.enabled = false;
  config.faults.outages = {
      {.link = 2, .down = Time::from_ns(200'000), .up = Time::from_ns(400'000)}};
  Star star(9, config, {.error_rate = 0.001});
  star.incast(2'000'000);
  u64 most_in_flight = 0;
  for (i64 at = 50'000; star.network.run(Time::from_ns(at)); at += 50'000) {
    u64 sent = 0, received = 0;
    for (NodeIndex host = 0; host < 9; ++host) {
      sent += star.network.host(host).device().counters().port_xmit_packets;
      received += star.network.host(host).device().counters().port_rcv_packets;
    }
    const Counters counters = star.network.counters();
    most_in_flight = std::max(most_in_flight, star.network.frames_in_flight());
    ASSERT_EQ(sent, received + counters.drops + counters.lost() + counters.unroutable +
                        star.network.frames_in_flight())
        << at;
  }
  EXPECT_EQ(star.recorder.finished.size(), 8u);
  EXPECT_GT(star.network.counters().drops, 0u);
  EXPECT_GT(star.network.counters().lost(), 0u);
  EXPECT_GT(most_in_flight, 100u);
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
  EXPECT_GT(star.network.counters().lost(), 0u);
  EXPECT_EQ(star.network.frames_in_flight(), 0u);
}

// Nothing follows that would show the loss, and nobody answers: the sender's timer alone knows.
TEST(Network, AFlowOfOnePacketSurvivesItsLoss) {
  Star star(3, config_with_mtu(MTU::k1024), {.error_rate = 0.2});
  star.incast(100);
  EXPECT_FALSE(star.network.run(Time::from_ns(60'000'000'000)));
  EXPECT_EQ(star.recorder.finished.size(), 2u);
  EXPECT_GT(star.network.counters().lost(), 0u);
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

struct Told final : Trace {
  void on_flow_finished(u32 flow, Time now) override { tell(0, flow, 0, 0, now); }
  void on_pause_received(NodeIndex node, u32 port, u32, u32 quanta, Time now) override {
    tell(1, node, port, quanta, now);
  }
  void tell(u64 kind, u64 a, u64 b, u64 c, Time now) {
    all.push_back({kind, a, b, c, static_cast<u64>(now.ps())});
  }
  std::vector<std::array<u64, 5>> all;
};

// Two racks of four hosts under two spines, with links of different lengths: everything at once.
struct Pods {
  explicit Pods(u32 threads, u64 seed = 1, bool telemetry = false) {
    std::vector<NodeIndex> hosts, spines;
    for (u32 i = 0; i < 8; ++i) hosts.push_back(topology.add_host());
    for (u32 i = 0; i < 2; ++i) spines.push_back(topology.add_switch());
    for (u32 rack = 0; rack < 2; ++rack) {
      const NodeIndex leaf = topology.add_switch();
      for (u32 i = 0; i < 4; ++i) topology.join(hosts[rack * 4 + i], leaf, {.delay = ns(300)});
      for (const NodeIndex spine : spines)
        topology.join(leaf, spine, {.delay = us(1), .error_rate = 0.0005});
    }
    NetworkConfig config;
    config.threads = threads;
    config.seed = seed;
    config.switches.buffer.size = 1u << 20;
    config.switch_port = [](const LinkConfig& link) {
      return SwitchPortConfig{.buffer = {.headroom = headroom_for(link.rate, link.delay, 1090)},
                              .marking = {.k_min = 20'000, .k_max = 100'000}};
    };
    config.switches.telemetry.enabled = telemetry;
    config.host = [telemetry](const LinkConfig& link) {
      HostConfig host;
      host.device.active_mtu = MTU::k1024;
      host.device.congestion.algorithm = DCQCNParameters{.line_rate = link.rate};
      host.collects_telemetry = telemetry;
      if (telemetry) host.device.congestion.algorithm = HPCCParameters{.line_rate = link.rate};
      return host;
    };
    network = std::make_unique<Network>(topology, config);
    network->set_trace(&told);
    PRNG prng(7);
    for (u32 i = 0; i < 60; ++i) {
      const NodeIndex from = static_cast<NodeIndex>(prng.below(8));
      const NodeIndex to = i % 3 == 0 && from != 0 ? 0 : (from + 1 + prng.below(7)) % 8;
      EXPECT_TRUE(network->add_flow({.source = from,
                                     .destination = to,
                                     .bytes = prng.below(600'000),
                                     .start = Time::from_ns(prng.in(0, 400) * 100)}));
    }
  }
  Topology topology;
  Told told;
  std::unique_ptr<Network> network;
};

// In steps, some of which end within a window.
template <typename Watch>
void run_in_steps(Network& network, const Watch& watch) {
  for (i64 end = 777; network.run(Time::from_ns(end)); end += 777 + end / 3) watch();
  watch();
}

TEST(Network, ThreadsChangeNothing) {
  for (const u64 seed : {1u, 2u}) {
    Pods one(1, seed);
    EXPECT_FALSE(one.network->run(Time::never()));
    EXPECT_EQ(one.network->flows_finished(), 60u);
    EXPECT_GT(one.network->counters().marks, 0u);
    EXPECT_GT(one.network->counters().pauses, 0u);
    EXPECT_GT(one.network->counters().lost(), 0u);
    for (const u32 threads : {2u, 3u}) {
      Pods several(threads, seed);
      EXPECT_FALSE(several.network->run(Time::never()));
      EXPECT_EQ(several.told.all, one.told.all) << threads;
      EXPECT_EQ(several.network->counters(), one.network->counters()) << threads;
      EXPECT_EQ(several.network->now(), one.network->now());
    }
  }
}

// The telemetry that switches write into frames travels with them.
TEST(Network, ThreadsChangeNothingInTelemetry) {
  Pods one(1, 1, true), two(2, 1, true);
  EXPECT_FALSE(one.network->run(Time::never()));
  EXPECT_FALSE(two.network->run(Time::never()));
  EXPECT_EQ(one.network->flows_finished(), 60u);
  EXPECT_EQ(two.told.all, one.told.all);
  EXPECT_EQ(two.network->counters(), one.network->counters());
}

TEST(Network, StepsChangeNothing) {
  Pods whole(1);
  EXPECT_FALSE(whole.network->run(Time::never()));
  for (const u32 threads : {1u, 2u}) {
    Pods steps(threads);
    run_in_steps(*steps.network, [] {});
    EXPECT_EQ(steps.told.all, whole.told.all);
    EXPECT_EQ(steps.network->counters(), whole.network->counters());
  }
}

TEST(Network, NoWayIsSaid) {
  Topology topology = test::star(2);
  const NodeIndex alone = topology.add_host(), other = topology.add_host();
  topology.join(alone, other, {});
  Network network(topology, {});
  EXPECT_FALSE(network.add_flow({.source = 0, .destination = alone, .bytes = 1}));
  EXPECT_TRUE(network.add_flow({.source = other, .destination = alone, .bytes = 1}));
}

TEST(Network, StopsAtTheEndAndGoesOn) {
  Star star(2);
  ASSERT_TRUE(star.network.add_flow({.source = 0, .destination = 1, .bytes = 1'000'000}));
  EXPECT_TRUE(star.network.run(Time::from_ns(50'000)));
  EXPECT_TRUE(star.recorder.finished.empty());
  EXPECT_GT(star.network.frames_in_flight(), 0u);
  EXPECT_FALSE(star.network.run(Time::never()));
  EXPECT_EQ(star.recorder.finished.size(), 1u);
}

// The largest message is cut into several, and an empty one is a message too.
TEST(Network, MessagesOfAnyLength) {
  Star star(2, config_with_mtu(MTU::k4096), {.rate = gbps(800)});
  ASSERT_TRUE(star.network.add_flow({.source = 0, .destination = 1, .bytes = 0}));
  EXPECT_EQ(star.network.host(0).messages_of(0), 1u);
  EXPECT_EQ(star.network.host(0).messages_of(1u << 30), 1u);
  EXPECT_EQ(star.network.host(0).messages_of((1u << 30) + 1), 2u);
  EXPECT_FALSE(star.network.run(Time::from_ns(1'000'000'000)));  // with ACK timers
  EXPECT_EQ(star.recorder.finished.size(), 1u);
}

}  // namespace
}  // namespace verbena::fabric
