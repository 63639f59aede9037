// Hosts with several links: which of them flows take, and what becomes of them when one fails.
#include "fabric/testing.h"

namespace verbena::fabric {
namespace {

using test::at_us;
using test::Course;
using test::pfc_alone;

constexpr u32 kHosts = 4;

// Hosts 0 .. 3, each on switches 4 and 5, which no link joins. Links 2 * i and 2 * i + 1 are host
// i's.
Topology two_planes() {
  Topology topology;
  for (u32 i = 0; i < kHosts; ++i) (void)topology.add_host();
  const NodeIndex planes[] = {topology.add_switch(), topology.add_switch()};
  for (NodeIndex host = 0; host < kHosts; ++host)
    for (const NodeIndex plane : planes) topology.join(host, plane, {});
  return topology;
}

std::vector<Flow> flows_between(NodeIndex source, NodeIndex destination, u32 count, u64 bytes) {
  std::vector<Flow> flows;
  for (u16 i = 0; i < count; ++i)
    flows.push_back({.source = source,
                     .destination = destination,
                     .bytes = bytes,
                     .source_port = static_cast<u16>(1000 + i),
                     .destination_port = 100});
  return flows;
}

NetworkConfig with(const NetworkFaults& faults, u32 threads = 1) {
  NetworkConfig config = pfc_alone();
  config.faults = faults;
  config.threads = threads;
  return config;
}

// 16 flows of 2 MB: each link alone would take 2.7 ms for them.
TEST(SeveralLinks, ManyFlowsTakeAllOfThem) {
  const Course course(two_planes(), with({}), flows_between(0, 1, 16, 2'000'000));
  ASSERT_EQ(course.ends.finished.size(), 16u);
  const double all = 16 * 2'000'000.0;
  for (const u32 port : {0u, 1u})
    EXPECT_NEAR(static_cast<double>(course.network.sent_bytes(0, port)) / all, 0.5, 0.26);
  EXPECT_EQ(course.network.counters().lost(), 0u);
  EXPECT_EQ(course.network.counters().unroutable, 0u);
}

TEST(SeveralLinks, SourcePortsCanBeChosenForThem) {
  const Network network(two_planes(), with({}));
  std::vector<Flow> flows = flows_between(0, 1, 8, 1'000'000);
  for (u32 i = 0; i < flows.size(); ++i) {
    flows[i].source_port = network.source_port_for(0, 1, i % 2, i / 2);
    flows[i].destination_port = 4791;
  }
  const Course course(two_planes(), with({}), flows);
  ASSERT_EQ(course.ends.finished.size(), 8u);
  EXPECT_EQ(course.network.sent_bytes(0, 0), course.network.sent_bytes(0, 1));
  EXPECT_NE(flows[0].source_port, flows[2].source_port);
}

// All go at once, and in order: nothing is sent twice.
TEST(SeveralLinks, AFlowTakesOne) {
  const Course course(two_planes(), with({}), flows_between(0, 1, 1, 2'000'000));
  const u64 sent[] = {course.network.sent_bytes(0, 0), course.network.sent_bytes(0, 1)};
  EXPECT_EQ(std::min(sent[0], sent[1]), 0u);
  EXPECT_LT(std::max(sent[0], sent[1]), 2'200'000u);
}

// Two ports at line rate give twice what one does, also where more QPs than ports want each.
TEST(SeveralLinks, BothPortsAreKeptBusy) {
  const Course course(two_planes(), with({}), flows_between(0, 1, 64, 500'000));
  double last = 0;
  for (const auto& [flow, end] : course.ends.finished)
    last = std::max(last, course.microseconds(flow));
  const double longer = static_cast<double>(
      std::max(course.network.sent_bytes(0, 0), course.network.sent_bytes(0, 1)));
  EXPECT_NEAR(last / (longer * 80e-6), 1, 0.02);  // at 80 ps a byte
}

// The other end of the flows: until routes follow, the plane that has lost it loses frames.
TEST(SeveralLinks, FlowsGoOnOverTheOtherAfterConvergence) {
  for (const u32 link : {0u, 1u, 2u, 3u}) {
    const Course course(
        two_planes(), with({.outages = {{.link = link, .down = at_us(500)}}, .convergence = ms(5)}),
        flows_between(0, 1, 16, 2'000'000));
    ASSERT_EQ(course.ends.finished.size(), 16u) << link;
    EXPECT_EQ(course.network.flows_failed(), 0u);
    u64 by_the_other = course.network.sent_bytes(0, (link + 1) % 2);
    EXPECT_GT(by_the_other, 20'000'000u);
  }
}

// Frames that wait at the port that fails move to the other port; later frames use it again.
TEST(SeveralLinks, AFlapOfOneIsNoEndOfAnything) {
  const NetworkFaults flap = {.outages = {{.link = 0, .down = at_us(200), .up = at_us(400)}},
                              .convergence = us(50)};
  const Course one(two_planes(), with(flap), flows_between(0, 1, 16, 2'000'000));
  ASSERT_EQ(one.ends.finished.size(), 16u);
  EXPECT_GT(one.network.sent_bytes(0, 0), 2'000'000u);
  const Course two(two_planes(), with(flap, 2), flows_between(0, 1, 16, 2'000'000));
  EXPECT_EQ(one.ends.finished, two.ends.finished);
  EXPECT_EQ(one.network.counters(), two.network.counters());
}

TEST(SeveralLinks, WithoutAnyAFlowIsGivenUp) {
  const Course course(
      two_planes(),
      with({.outages = {{.link = 2, .down = at_us(100)}, {.link = 3, .down = at_us(100)}}}),
      flows_between(0, 1, 2, 2'000'000));
  EXPECT_EQ(course.network.flows_failed(), 2u);
}

// PFC is a port's own: host 1 is paused in one plane, and sends on in the other.
TEST(SeveralLinks, APauseHoldsUpOnePort) {
  NetworkConfig config =
      with({.stuck_pauses = {{.node = 4, .port = 1, .from = Time(), .until = at_us(20'000)}}});
  const Course course(two_planes(), config, flows_between(1, 2, 16, 200'000));
  ASSERT_EQ(course.ends.finished.size(), 16u);
  u32 held = 0;
  for (const auto& [flow, end] : course.ends.finished) held += end > at_us(20'000) ? 1 : 0;
  EXPECT_GT(held, 0u);
  EXPECT_LT(held, 16u);
}

// Three to one, in both planes: pauses go to each port, and nothing is lost.
TEST(SeveralLinks, IncastsAreWithoutLoss) {
  NetworkConfig config = with({});
  config.switches.buffer.size = 512u << 10;
  std::vector<Flow> flows;
  for (const NodeIndex from : {1u, 2u, 3u})
    for (const Flow& flow : flows_between(from, 0, 8, 300'000)) flows.push_back(flow);
  const Course course(two_planes(), config, flows);
  EXPECT_EQ(course.ends.finished.size(), flows.size());
  EXPECT_GT(course.network.counters().pauses, 10u);
  EXPECT_EQ(course.network.counters().drops, 0u);
}

}  // namespace
}  // namespace verbena::fabric
