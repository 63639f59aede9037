#include "fabric/deadlock.h"

#include "fabric/testing.h"

namespace verbena::fabric {
namespace {

using test::kRing;
using test::ring;

// 1 MiB of buffer, and pauses that end so.
NetworkConfig with_expiry(PauseExpiry expiry) {
  NetworkConfig config = test::pfc_alone();
  config.host = [usual = config.host, expiry](const LinkConfig& link) {
    HostConfig host = usual(link);
    host.pause_expiry = expiry;
    return host;
  };
  config.switches.buffer.size = 1u << 20;
  config.switches.pfc.expiry = expiry;
  return config;
}

// Each host sends to the one two switches on: the shortest way is always the same way round.
struct Ring {
  Ring(PauseExpiry expiry, bool watchdog) : network(topology, config(expiry, watchdog)) {
    for (u32 i = 0; i < kRing; ++i)
      EXPECT_TRUE(
          network.add_flow({.source = i, .destination = (i + 2) % kRing, .bytes = 5'000'000}));
  }
  static NetworkConfig config(PauseExpiry expiry, bool watchdog) {
    NetworkConfig config = with_expiry(expiry);
    config.switches.pfc.watchdog = {.enabled = watchdog, .detection = ms(5), .restoration = ms(5)};
    return config;
  }
  Topology topology = ring();
  Network network;
};

TEST(Deadlock, ARingIsFoundAndNamed) {
  for (const PauseExpiry expiry : {PauseExpiry::kNever, PauseExpiry::kQuanta}) {
    Ring ring(expiry, false);
    (void)ring.network.run(Time::from_ns(20'000'000));
    EXPECT_LT(ring.network.flows_finished(), kRing);
    EXPECT_GT(ring.network.frames_in_flight(), 0u);
    ASSERT_TRUE(ring.network.deadlock().has_value());
    const Deadlock& deadlock = *ring.network.deadlock();
    EXPECT_LE(deadlock.seen, Time::from_ns(5'000'000));
    ASSERT_EQ(deadlock.cycle.size(), kRing);
    for (u32 i = 0; i < kRing; ++i) {
      const WaitingQueue &queue = deadlock.cycle[i], &next = deadlock.cycle[(i + 1) % kRing];
      EXPECT_EQ(queue.priority, 3u);
      const Port& port = ring.network.port(queue.node, queue.port);
      EXPECT_EQ(ring.network.node_of(port.peer), next.node);
    }
    EXPECT_TRUE(to_string(deadlock).ends_with(", priority 3"));
  }
}

// A watchdog throws frames away, and the flows end.
TEST(Deadlock, AWatchdogEndsIt) {
  Ring ring(PauseExpiry::kQuanta, true);
  (void)ring.network.run(Time::from_ns(20'000'000'000));
  EXPECT_TRUE(ring.network.deadlock().has_value());
  EXPECT_GT(ring.network.counters().storms, 0u);
  EXPECT_GT(ring.network.counters().watchdog_drops, 0u);
  EXPECT_EQ(ring.network.flows_finished(), kRing);
  EXPECT_EQ(ring.network.frames_in_flight(), 0u);
}

// Leaves and spines, where routes go up and then down: incasts that pause everything, and no
// deadlock.
TEST(Deadlock, UpAndDownRoutesHaveNone) {
  Topology topology;
  constexpr u32 kLeaves = 4, kHosts = 4;
  for (u32 i = 0; i < kLeaves * kHosts; ++i) (void)topology.add_host();
  std::vector<NodeIndex> leaves, spines;
  for (u32 i = 0; i < kLeaves; ++i) leaves.push_back(topology.add_switch());
  for (u32 i = 0; i < 2; ++i) spines.push_back(topology.add_switch());
  for (u32 i = 0; i < kLeaves * kHosts; ++i) topology.join(i, leaves[i / kHosts], {});
  for (const NodeIndex leaf : leaves)
    for (const NodeIndex spine : spines) topology.join(leaf, spine, {});
  Network network(topology, with_expiry(PauseExpiry::kNever));
  u32 flows = 0;
  for (NodeIndex from = 0; from < kLeaves * kHosts; ++from)
    for (const NodeIndex to : {from + 1, from + 5, from + 6, from + 11})
      for (const NodeIndex target : {to % 16, to % 4 * 4})
        if (target != from) {
          ++flows;
          EXPECT_TRUE(network.add_flow({.source = from, .destination = target, .bytes = 500'000}));
        }
  (void)network.run(Time::from_ns(1'000'000'000));
  EXPECT_EQ(network.flows_finished(), flows);
  EXPECT_GT(network.counters().pauses, 1000u);
  EXPECT_FALSE(network.deadlock().has_value());
}

}  // namespace
}  // namespace verbena::fabric
