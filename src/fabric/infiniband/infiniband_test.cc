// Networks of InfiniBand as a whole: hosts with the device that programs use, links, switches.
#include <gtest/gtest.h>

#include <map>

#include "fabric/network.h"
#include "fabric/results/alone_time.h"
#include "fabric/testing.h"
#include "fabric/topologies/dumbbell.h"
#include "fabric/topologies/fat_tree.h"
#include "fabric/topologies/leaf_spine.h"
#include "fabric/topologies/star.h"

namespace verbena::fabric {
namespace {

constexpr u32 kOverhead = kLocalOverheadBytes + 12;  // LRH, BTH, ICRC, VCRC
constexpr u32 kRETH = 16, kAETH = 4;

NetworkConfig infiniband() {
  NetworkConfig config;
  config.technology = Technology::kInfiniBand;
  config.host = [](const LinkConfig&) {
    HostConfig host;
    host.device.active_mtu = MTU::k4096;
    return host;
  };
  return config;
}

struct Subnet final : Trace {
  Subnet(Topology its_topology, const NetworkConfig& config)
      : topology(std::move(its_topology)), network(topology, config) {
    network.set_trace(this);
  }
  void on_flow_finished(u32 flow, Time now) override { finished[flow] = now; }
  void on_pause_received(NodeIndex, u32, u32, u32, Time) override { ADD_FAILURE(); }

  void add(NodeIndex from, NodeIndex to, u64 bytes, u8 priority = 3) {
    EXPECT_TRUE(network.add_flow(
        {.source = from, .destination = to, .bytes = bytes, .priority = priority}));
    ++flows;
  }
  void run() { EXPECT_FALSE(network.run(Time::from_ns(10'000'000'000))); }
  void expect_nothing_lost() {
    EXPECT_EQ(network.flows_finished(), flows);
    const Counters counters = network.counters();
    EXPECT_EQ(counters.drops + counters.lost() + counters.unroutable + counters.early_drops, 0u);
    EXPECT_EQ(counters.pauses, 0u);
    EXPECT_EQ(network.frames_in_flight(), 0u);
  }

  Topology topology;
  Network network;
  std::map<u32, Time> finished;
  u32 flows = 0;
};

// --- time

TEST(InfiniBand, OnePacketTakesItsTimeToThePicosecond) {
  NetworkConfig config = infiniband();
  config.infiniband.latency = ns(130);
  Subnet run(star(2, {}).topology, config);
  run.add(0, 1, 1000);
  run.run();
  run.expect_nothing_lost();
  // Through a switch that cuts through: LRH, delay and latency, then all of it, each way.
  const i64 data = (1000 + kOverhead + kRETH) * 80, ack = (kOverhead + kAETH) * 80;
  const i64 switched = kLRHBytes * 80 + 130'000 + 2 * 1'000'000;
  EXPECT_EQ(run.finished.at(0).ps(), data + ack + 2 * switched);
}

TEST(InfiniBand, AFlowAloneTakesWhatIsComputed) {
  for (const bool cuts_through : {true, false})
    for (const u64 bytes : {u64{1}, u64{4096}, u64{100'000}, u64{8'192'000}}) {
      NetworkConfig config = infiniband();
      config.infiniband.cuts_through = cuts_through;
      const Plan plan = fat_tree(4, {});
      Subnet run(plan.topology, config);
      run.add(plan.hosts.front(), plan.hosts.back(), bytes);
      const Flow flow{
          .source = plan.hosts.front(), .destination = plan.hosts.back(), .bytes = bytes};
      const Duration alone =
          alone_time(flow, sizes_for(Technology::kInfiniBand, 4096), run.network);
      run.run();
      run.expect_nothing_lost();
      const double ratio =
          static_cast<double>(run.finished.at(0).ps()) / static_cast<double>(alone.ps());
      EXPECT_NEAR(ratio, 1, 0.001) << bytes << (cuts_through ? ", cut through" : ", stored");
    }
}

// --- credits

struct Loop {
  u32 packets;  // that a buffer holds
  Duration delay;
};
class CreditLoop : public ::testing::TestWithParam<Loop> {};

// In one round trip of the credits the sender sends as much as the buffer holds. A round trip lasts
// from the first bit of a packet to the credit that it gave back: the link, LRH and switch, the
// packet on the next link, the flow control packet, the link.
TEST_P(CreditLoop, ThroughputIsBufferOverRoundTrip) {
  constexpr u32 kPacket = 4096 + kOverhead, kBlocks = 65;
  const auto [packets, delay] = GetParam();
  NetworkConfig config = infiniband();
  config.infiniband.buffer_bytes = packets * kBlocks * CreditConfig::kBlockBytes;
  config.infiniband.credit_update_bytes = 1;
  const LinkConfig link{.rate = gbps(100), .delay = delay};
  Subnet run(star(2, link).topology, config);
  constexpr u64 kPackets = 10'000;
  run.add(0, 1, kPackets * 4096);
  run.run();
  run.expect_nothing_lost();
  const Duration round_trip = delay * 2 + config.infiniband.latency +
                              link.rate.time_of(kLRHBytes + kPacket + kFlowControlBytes);
  const double line = static_cast<double>(link.rate.bps()) / 8 * 4096 / kPacket;
  const double expected = std::min(line, packets * 4096.0 / round_trip.seconds());
  const double seconds = static_cast<double>(run.finished.at(0).ps()) * 1e-12;
  EXPECT_NEAR(kPackets * 4096.0 / seconds / expected, 1, 0.01);
  const bool is_starved = expected < line;
  EXPECT_EQ(run.network.waited_for_credits(0, 0) > Duration(), is_starved);
}

INSTANTIATE_TEST_SUITE_P(BuffersAndDelays, CreditLoop,
                         ::testing::Values(Loop{1, ns(100)}, Loop{1, us(1)}, Loop{2, us(1)},
                                           Loop{3, us(1)}, Loop{5, us(2)}, Loop{10, us(2)},
                                           Loop{31, us(2)}, Loop{31, us(10)}));

TEST(InfiniBand, BuffersByThemselvesAreLargeEnoughForTheLink) {
  for (const Duration delay : {ns(10), ns(150), us(1)})
    for (const Rate rate : {gbps(100), gbps(400)}) {
      const LinkConfig link{.rate = rate, .delay = delay};
      Subnet run(star(3, link).topology, infiniband());
      for (NodeIndex host = 0; host < 3; ++host) run.add(host, (host + 1) % 3, 20'000'000);
      run.run();
      run.expect_nothing_lost();
      const bool fits = credits_for({}, link).buffer_blocks < CreditConfig::kMostBlocks;
      const double seconds = static_cast<double>(run.finished.at(0).ps()) * 1e-12;
      const double line = static_cast<double>(rate.bps()) / 8 * 4096 / (4096 + kOverhead);
      if (fits) {
        EXPECT_GT(20e6 / seconds / line, 0.97) << delay.ns() << " ns, " << rate.bps();
      }
    }
}

// --- nothing is lost, and nothing pauses

class Lossless : public ::testing::TestWithParam<u64> {};

NetworkConfig random_config(PRNG& prng) {
  NetworkConfig config = infiniband();
  InfiniBandConfig& infiniband = config.infiniband;
  infiniband.lanes = 1u << prng.below(4);
  for (u8& lane : infiniband.sl_to_vl) lane = static_cast<u8>(prng.below(infiniband.lanes));
  if (prng.chance(0.5)) infiniband.buffer_bytes = static_cast<u32>(4160 + prng.below(100'000));
  if (prng.chance(0.5)) infiniband.credit_update_bytes = static_cast<u32>(1 + prng.below(8192));
  infiniband.cuts_through = prng.chance(0.5);
  infiniband.routing = kRoutingEngines[prng.below(kRoutingEngines.size())];
  infiniband.arbitration.strict = static_cast<u8>(prng.below(256));
  config.seed = prng.next();
  return config;
}

Plan random_tree(PRNG& prng) {
  const PlanLinks links{.host = {.rate = gbps(100), .delay = ns(100 + i64(prng.below(2000)))},
                        .fabric = {.rate = gbps(prng.chance(0.5) ? 50 : 200), .delay = ns(300)}};
  switch (prng.below(3)) {
    case 0: return star(static_cast<u32>(3 + prng.below(10)), links.host);
    case 1: return fat_tree(4, links);
  }
  return leaf_spine({.leaves = 3, .spines = 2, .hosts_per_leaf = 4}, links);
}

TEST_P(Lossless, WhateverIsSent) {
  PRNG prng(GetParam());
  const NetworkConfig config = random_config(prng);
  const Plan plan = random_tree(prng);
  Subnet run(plan.topology, config);
  const NodeIndex hot = plan.hosts[prng.below(plan.hosts.size())];
  u64 sent = 0;
  for (const NodeIndex from : plan.hosts)
    for (const NodeIndex to : {hot, plan.hosts[prng.below(plan.hosts.size())]})
      if (from != to) {
        const u64 bytes = 1 + prng.below(300'000);
        sent += bytes;
        run.add(from, to, bytes, static_cast<u8>(prng.below(kPriorities)));
      }
  run.run();
  EXPECT_FALSE(run.network.deadlock().has_value());
  if (config.infiniband.routing == RoutingEngine::kAdaptive) {  // overtaken packets go again
    EXPECT_EQ(run.network.flows_finished(), run.flows);
    EXPECT_EQ(run.network.counters().drops + run.network.counters().lost(), 0u);
    return;
  }
  run.expect_nothing_lost();
  u64 payload_arrived = 0, packets_sent = 0, packets_arrived = 0;
  for (const NodeIndex host : plan.hosts) {
    const auto& counters = run.network.host(host).device().counters();
    packets_sent += counters.port_xmit_packets;
    packets_arrived += counters.port_rcv_packets;
    payload_arrived += counters.port_rcv_bytes;
  }
  EXPECT_EQ(packets_sent, packets_arrived);
  EXPECT_GE(payload_arrived, sent);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Lossless, ::testing::Range<u64>(1, 41));

TEST(InfiniBand, ASlowReceiverHoldsItsSenderBack) {
  NetworkConfig config = infiniband();
  config.faults.slow_receivers = {{.node = 0, .receiver = {.drain = gbps(10)}}};
  Subnet run(star(3, {}).topology, config);
  run.add(1, 0, 2'000'000);
  run.add(2, 0, 2'000'000);
  run.run();
  run.expect_nothing_lost();
  const double seconds = static_cast<double>(run.finished.at(0).ps()) * 1e-12;
  EXPECT_NEAR(4e6 * 8 / 10e9 / seconds, 1, 0.05);
}

// Links that lose packets give their credits back; a link that comes back has all its credits.
TEST(InfiniBand, CreditsSurviveLinksThatDoNot) {
  NetworkConfig config = infiniband();
  config.faults.convergence = us(50);
  const PlanLinks links{.host = {.error_rate = 0.002}, .fabric = {.error_rate = 0.002}};
  const Plan plan = leaf_spine({.leaves = 2, .spines = 2, .hosts_per_leaf = 3}, links);
  const u32 first_up = 6;
  config.faults.outages = {
      {.link = first_up, .down = Time::from_ns(100'000), .up = Time::from_ns(400'000)},
      {.link = 0, .down = Time::from_ns(150'000), .up = Time::from_ns(300'000)}};
  Subnet run(plan.topology, config);
  for (u32 i = 0; i < 3; ++i) {
    run.add(plan.hosts[i], plan.hosts[3 + i], 10'000'000);
    run.add(plan.hosts[3 + i], plan.hosts[(i + 1) % 3], 10'000'000);
  }
  run.run();
  EXPECT_EQ(run.network.flows_finished(), run.flows);
  EXPECT_GT(run.network.counters().lost(), 50u);
  EXPECT_EQ(run.network.counters().drops, 0u);
  EXPECT_EQ(run.network.frames_in_flight(), 0u);
}

// --- lanes

// Two leaves. A victim sends over the link between them, as does a sender to a host whose own link
// is wanted by others too.
constexpr u8 kVictim = 1, kOthers = 0;
Time time_of_victim(u32 lanes, CongestionParameters congestion = {}, FECNConfig fecn = {}) {
  NetworkConfig config = infiniband();
  config.infiniband.lanes = lanes;
  for (u32 sl = 0; sl < kPriorities; ++sl)
    config.infiniband.sl_to_vl[sl] = static_cast<u8>(sl % lanes);
  config.infiniband.fecn = fecn;
  const auto host = config.host;
  config.host = [host, congestion](const LinkConfig& link) {
    HostConfig own = host(link);
    own.device.congestion = congestion;
    return own;
  };
  Subnet run(dumbbell(2, 5, {}).topology, config);  // 0, 1 on the left, 2 .. 6 on the right
  run.add(0, 2, 3'000'000, kVictim);
  for (const NodeIndex from : {1u, 4u, 5u, 6u}) run.add(from, 3, 6'000'000, kOthers);
  run.run();
  run.expect_nothing_lost();
  EXPECT_EQ(run.network.counters().marks != 0, fecn.enabled);
  return run.finished.at(0);
}

TEST(InfiniBand, AVictimIsBlockedOnTheLaneAndNotOnAnother) {
  const double shared = static_cast<double>(time_of_victim(1).ps()),
               apart = static_cast<double>(time_of_victim(2).ps());
  const double alone = 3e6 * 8 / 100e9 * 1e12 * (4096 + kOverhead) / 4096;
  EXPECT_LT(apart, 1.5 * alone);   // the others take a quarter of 100 Gb/s
  EXPECT_GT(shared, 2.5 * alone);  // they hold it down to theirs
}

TEST(InfiniBand, CongestionControlFreesTheVictim) {
  const CongestionParameters control{.algorithm = IBCCParameters{.line_rate = gbps(100)},
                                     .notification = {.cnp_interval = Duration{}}};
  const FECNConfig fecn{.enabled = true};
  const Time without = time_of_victim(1), with = time_of_victim(1, control, fecn);
  EXPECT_LT(static_cast<double>(with.ps()), 0.5 * static_cast<double>(without.ps()));
}

TEST(InfiniBand, WeightsDivideALinkAmongLanes) {
  NetworkConfig config = infiniband();
  config.infiniband.arbitration.quantum = {64 * 64, 3 * 64 * 64};
  Subnet run(star(3, {}).topology, config);
  run.add(1, 0, 3'000'000, 0);
  run.add(2, 0, 9'000'000, 1);
  run.run();
  run.expect_nothing_lost();
  const double ratio =
      static_cast<double>(run.finished.at(0).ps()) / static_cast<double>(run.finished.at(1).ps());
  EXPECT_NEAR(ratio, 1, 0.05);
}

TEST(InfiniBand, HighPriorityLanesGoFirst) {
  NetworkConfig config = infiniband();
  config.infiniband.arbitration.strict = 1u << 5;
  Subnet run(star(3, {}).topology, config);
  run.add(1, 0, 5'000'000, 0);
  run.add(2, 0, 5'000'000, 5);
  run.run();
  run.expect_nothing_lost();
  EXPECT_LT(run.finished.at(1).ps() * 18, run.finished.at(0).ps() * 10);
}

// --- deadlocks

using test::kRing;
using test::ring;

TEST(InfiniBand, ShortestWaysDeadlockARingAndUpDownDoesNot) {
  for (const RoutingEngine engine : {RoutingEngine::kMinHop, RoutingEngine::kUpDown}) {
    NetworkConfig config = infiniband();
    config.infiniband.routing = engine;
    Subnet run(ring(), config);
    for (u32 i = 0; i < kRing; ++i) run.add(i, (i + 2) % kRing, 5'000'000);
    (void)run.network.run(Time::from_ns(20'000'000));
    EXPECT_EQ(run.network.deadlock().has_value(), engine == RoutingEngine::kMinHop);
    EXPECT_EQ(run.network.flows_finished() == kRing, engine == RoutingEngine::kUpDown);
    if (!run.network.deadlock()) continue;
    const Deadlock& deadlock = *run.network.deadlock();
    ASSERT_EQ(deadlock.cycle.size(), kRing);
    for (u32 i = 0; i < kRing; ++i) {
      const WaitingQueue& queue = deadlock.cycle[i];
      const Port& port = run.network.port(queue.node, queue.port);
      EXPECT_EQ(run.network.node_of(port.peer), deadlock.cycle[(i + 1) % kRing].node);
      EXPECT_EQ(queue.priority, 3u);
    }
  }
}

// --- the same whoever simulates

TEST(InfiniBand, SameResultsWithAnyNumberOfThreads) {
  std::map<u32, Time> finished;
  Counters counters;
  for (const u32 threads : {1u, 2u, 3u}) {
    NetworkConfig config = infiniband();
    config.threads = threads;
    config.infiniband.routing = RoutingEngine::kFatTree;
    config.infiniband.buffer_bytes = 16'000;
    const Plan plan = fat_tree(4, {});
    Subnet run(plan.topology, config);
    for (const NodeIndex host : plan.hosts)
      for (const u32 shift : {1u, 5u, 10u})
        run.add(host,
                plan.hosts[(host * 3 + shift + 1) % 16 == host ? (host + 1) % 16
                                                               : (host * 3 + shift + 1) % 16],
                200'000);
    run.run();
    run.expect_nothing_lost();
    if (threads == 1) {
      finished = run.finished;
      counters = run.network.counters();
    }
    EXPECT_EQ(run.finished, finished) << threads;
    EXPECT_EQ(run.network.counters(), counters) << threads;
  }
  EXPECT_GT(counters.credit_updates, 1000u);
}

}  // namespace
}  // namespace verbena::fabric
