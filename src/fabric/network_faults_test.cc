#include "fabric/network_faults.h"

#include "fabric/testing.h"

namespace verbena::fabric {
namespace {

using test::at_us;
using test::Course;
using test::pfc_alone;
using test::star;

NetworkConfig with(const NetworkFaults& faults, u32 threads = 1) {
  NetworkConfig config = pfc_alone();
  config.faults = faults;
  config.threads = threads;
  return config;
}

// Host 0 at switch 2, host 1 at switch 3, switches 4 and 5 between them. Links: 0 and 1 of the
// hosts; 2 and 3 from switch 2, 4 and 5 to switch 3.
Topology diamond() {
  Topology topology;
  for (int i = 0; i < 2; ++i) (void)topology.add_host();
  for (int i = 0; i < 4; ++i) (void)topology.add_switch();
  topology.join(0, 2, {});
  topology.join(1, 3, {});
  for (const NodeIndex spine : {4u, 5u}) topology.join(2, spine, {});
  for (const NodeIndex spine : {4u, 5u}) topology.join(3, spine, {});
  return topology;
}

// 20 MB take 1.7 ms.
const std::vector<Flow> kOneFlow = {{.source = 0, .destination = 1, .bytes = 20'000'000}};

// The way of the acknowledgements is another one's business: flows of which both ways are hit wait.
TEST(LinkOutages, TheSwitchAtTheLinkTakesAnotherWayAtOnce) {
  u32 went_on = 0;
  for (u16 source_port = 1; source_port <= 8; ++source_port) {
    std::vector<Flow> flow = kOneFlow;
    flow[0].source_port = source_port;
    const Course course(
        diamond(), with({.outages = {{.link = 2, .down = at_us(500)}}, .convergence = ms(100)}),
        flow);
    ASSERT_EQ(course.ends.finished.size(), 1u);
    const bool was_hit = course.network.counters().lost() > 5;
    went_on += was_hit && course.ends.finished.at(0) < at_us(3000) ? 1 : 0;
  }
  EXPECT_GT(went_on, 0u);
}

// A link further on: until routes are computed anew, frames that the first switch sends there are
// lost.
TEST(LinkOutages, TheOthersFollowLater) {
  u32 delayed = 0;
  for (const u32 link : {4u, 5u}) {
    const Course course(
        diamond(), with({.outages = {{.link = link, .down = at_us(500)}}, .convergence = ms(5)}),
        kOneFlow);
    ASSERT_EQ(course.ends.finished.size(), 1u) << link;
    delayed += course.ends.finished.at(0) > at_us(5000) ? 1 : 0;
    EXPECT_EQ(course.network.counters().unroutable != 0, course.ends.finished.at(0) > at_us(5000));
  }
  EXPECT_EQ(delayed, 1u);  // the flow takes one of them
}

TEST(LinkOutages, WhatIsOnItsWayIsLostAndCountedAndAFlapEnds) {
  const Course course(diamond(),
                      with({.outages = {{.link = 1, .down = at_us(300), .up = at_us(700)},
                                        {.link = 0, .down = at_us(1000), .up = at_us(1200)}}}),
                      kOneFlow);
  ASSERT_EQ(course.ends.finished.size(), 1u);
  // At least what one microsecond of the link holds.
  EXPECT_GE(course.network.counters().lost(), 11u);
  EXPECT_GT(course.network.counters().unroutable, 0u);
}

TEST(LinkOutages, WithoutAWayAFlowIsGivenUp) {
  const Course course(diamond(), with({.outages = {{.link = 1, .down = at_us(300)}}}), kOneFlow);
  EXPECT_TRUE(course.ends.finished.empty());
  EXPECT_EQ(course.ends.failed, std::vector<u32>{0});
  EXPECT_EQ(course.network.flows_failed(), 1u);
}

TEST(LinkOutages, TheSameForAnyNumberOfThreads) {
  const NetworkFaults faults = {.outages = {{.link = 4, .down = at_us(300), .up = at_us(900)},
                                            {.link = 1, .down = at_us(1300), .up = at_us(1400)}},
                                .convergence = us(100)};
  const Course one(diamond(), with(faults, 1), kOneFlow), two(diamond(), with(faults, 2), kOneFlow);
  EXPECT_EQ(one.ends.finished, two.ends.finished);
  EXPECT_EQ(one.network.counters(), two.network.counters());
}

// Host 0 pauses its switch. Host 1 sends to it, and to host 2, which suffers for it.
const std::vector<Flow> kVictim = {{.source = 1, .destination = 0, .bytes = 8'000'000},
                                   {.source = 1, .destination = 2, .bytes = 8'000'000}};

// From 0.1 to 50 ms, and 1 MiB of buffer.
NetworkConfig with_stuck_pause() {
  NetworkConfig config =
      with({.stuck_pauses = {{.node = 0, .from = at_us(100), .until = at_us(50'000)}}});
  config.switches.buffer.size = 1u << 20;
  return config;
}

TEST(StuckPauses, HoldUpOthersWhileTheyLast) {
  const Course course(star(3), with_stuck_pause(), kVictim);
  ASSERT_EQ(course.ends.finished.size(), 2u);
  EXPECT_GT(course.ends.finished.at(1), at_us(50'000));
  EXPECT_GT(course.network.counters().pauses, 50'000u / 168);  // refreshed twice in each 336 us
  EXPECT_FALSE(course.network.deadlock().has_value());         // it waits for a host
}

// The same host sends to host 2 in another priority, which nobody pauses.
TEST(StuckPauses, HoldUpNoOtherPriority) {
  std::vector<Flow> flows = kVictim;
  flows[1].priority = 4;
  const Course course(star(3), with_stuck_pause(), flows);
  ASSERT_EQ(course.ends.finished.size(), 2u);
  EXPECT_LT(course.ends.finished.at(1), at_us(2000));
  EXPECT_GT(course.ends.finished.at(0), at_us(50'000));
  EXPECT_EQ(course.network.counters().drops, 0u);
}

TEST(StuckPauses, AWatchdogFreesTheOthers) {
  NetworkConfig config = with_stuck_pause();
  config.switches.pfc.watchdog = {.enabled = true, .detection = ms(2), .restoration = ms(2)};
  const Course course(star(3), config, kVictim);
  ASSERT_EQ(course.ends.finished.size(), 2u);
  EXPECT_LT(course.ends.finished.at(1), at_us(10'000));
  EXPECT_GT(course.ends.finished.at(0), at_us(50'000));
  EXPECT_EQ(course.network.counters().storms, 1u);
}

NetworkConfig with_host(const ReceiverConfig& receiver, const PCIeConfig& pcie) {
  NetworkConfig config = pfc_alone();
  config.host = [usual = config.host, receiver, pcie](const LinkConfig& link) {
    HostConfig host = usual(link);
    host.receiver = receiver;
    host.pcie = pcie;
    return host;
  };
  return config;
}

// Host 0 drains 20 Gb/s, and asks for a pause above 100 kB.
Course to_slow_receiver(u32 buffer_bytes, u64 bytes) {
  return {star(2),
          with_host({.drain = gbps(20),
                     .buffer_bytes = buffer_bytes,
                     .pause_above = 100'000,
                     .resume_below = 50'000},
                    {}),
          {{.source = 1, .destination = 0, .bytes = bytes}}};
}

// 4 MB at 20 Gb/s take 1.7 ms with headers. The NIC's buffer fills, and pauses keep it from
// overflowing.
TEST(SlowReceivers, DrainAtTheirRateAndPause) {
  const Course course = to_slow_receiver(200'000, 4'000'000);
  ASSERT_EQ(course.ends.finished.size(), 1u);
  EXPECT_NEAR(static_cast<double>(course.ends.finished.at(0).ns()), 1'720'000, 50'000);
  EXPECT_GT(course.network.counters().pauses, 10u);
  EXPECT_EQ(course.network.counters().receiver_drops, 0u);
}

TEST(SlowReceivers, WithoutRoomTheyDrop) {
  const Course course = to_slow_receiver(100'000, 1'000'000);
  EXPECT_EQ(course.ends.finished.size(), 1u);
  EXPECT_GT(course.network.counters().receiver_drops, 0u);
  EXPECT_EQ(course.network.counters().drops, 0u);
}

TEST(PCIe, TakesItsTimeBeforeAndAfter) {
  const std::vector<Flow> flow = {{.source = 1, .destination = 0, .bytes = 100'000}};
  const Course without(star(2), with_host({}, {}), flow);
  const Course with_it(star(2), with_host({}, {.posting = ns(900), .completion = ns(300)}), flow);
  ASSERT_EQ(with_it.ends.finished.size(), 1u);
  EXPECT_EQ(with_it.ends.finished.at(0) - without.ends.finished.at(0), ns(1200));
}

}  // namespace
}  // namespace verbena::fabric
