// RC, and XRC, over wires that lose, reorder, duplicate, corrupt and mark: everything completes
// once, in order, with success, and memory is as the plain model says.
#include <gtest/gtest.h>

#include "tests/sim/rc_workload.h"
#include "tests/sim/seeds.h"

namespace verbena::sim {
namespace {

constexpr Duration kLongEnough = sec(1000);

class RCFabric : public ::testing::TestWithParam<u64> {};

TEST_P(RCFabric, EverythingCompletesOnceInOrder) {
  World world(GetParam());
  RCWorkload work(world, RCPlan::draw(world.prng()));
  EXPECT_EQ(work.run(kLongEnough), std::nullopt) << world.report();
}

INSTANTIATE_TEST_SUITE_P(Seeds, RCFabric, ::testing::ValuesIn(seeds()), seed_name);

class XRCFabric : public ::testing::TestWithParam<u64> {};

TEST_P(XRCFabric, EverythingCompletesOnceInOrder) {
  World world(GetParam());
  RCWorkload work(world, RCPlan::draw_xrc(world.prng()));
  EXPECT_EQ(work.run(kLongEnough), std::nullopt) << world.report();
}

INSTANTIATE_TEST_SUITE_P(Seeds, XRCFabric, ::testing::ValuesIn(seeds(2)), seed_name);

class SelectiveFabric : public ::testing::TestWithParam<u64> {};

TEST_P(SelectiveFabric, EverythingCompletesOnceInOrder) {
  World world(GetParam());
  PRNG& prng = world.prng();
  RCPlan plan = prng.chance(0.2) ? RCPlan::draw_xrc(prng) : RCPlan::draw(prng);
  RCWorkload work(world, RCPlan::with_selective_repeat(std::move(plan), prng));
  EXPECT_EQ(work.run(kLongEnough), std::nullopt) << world.report();
}

INSTANTIATE_TEST_SUITE_P(Seeds, SelectiveFabric, ::testing::ValuesIn(seeds()), seed_name);

u64 packets_sent_again(Retransmission retransmission) {
  u64 sum = 0;
  for (u64 seed = 1; seed <= 40; ++seed) {
    World world(seed);
    RCPlan plan = RCPlan::draw(world.prng());
    plan.retransmission = {retransmission, retransmission};
    RCWorkload work(world, plan);
    EXPECT_EQ(work.run(kLongEnough), std::nullopt) << world.report();
    for (std::size_t side = 0; side < 2; ++side)
      sum += work.counters(side).transport.retransmitted_packets;
  }
  return sum;
}

TEST(SelectiveFabricCoverage, FarLessGoesAgainThanGoingBackSends) {
  const u64 few = packets_sent_again(Retransmission::kSelectiveRepeat);
  EXPECT_GT(few, 0u);
  EXPECT_LT(few * 2, packets_sent_again(Retransmission::kGoBackN));
}

// The seeds prove nothing about a recovery that they never reach.
TEST(RCFabricCoverage, TheSeedsReachEveryRecovery) {
  EngineCounters sum;
  Counters port;
  for (u64 seed = 1; seed <= 150; ++seed) {
    World world(seed);
    RCWorkload work(world, RCPlan::draw(world.prng()));
    ASSERT_EQ(work.run(kLongEnough), std::nullopt) << world.report();
    for (std::size_t side = 0; side < 2; ++side) {
      const Counters& c = work.counters(side);
      sum.out_of_sequence += c.transport.out_of_sequence;
      sum.duplicate_request += c.transport.duplicate_request;
      sum.implied_nak_seq_err += c.transport.implied_nak_seq_err;
      sum.packet_seq_err += c.transport.packet_seq_err;
      sum.rnr_nak_retry_err += c.transport.rnr_nak_retry_err;
      sum.local_ack_timeout_err += c.transport.local_ack_timeout_err;
      sum.roce_adp_retrans += c.transport.roce_adp_retrans;
      sum.retransmitted_packets += c.transport.retransmitted_packets;
      sum.rx_write_requests += c.transport.rx_write_requests;
      sum.rx_read_requests += c.transport.rx_read_requests;
      sum.rx_atomic_requests += c.transport.rx_atomic_requests;
      port.rx_icrc_encapsulated += c.rx_icrc_encapsulated;
      port.np_ecn_marked_roce_packets += c.np_ecn_marked_roce_packets;
      port.rp_cnp_handled += c.rp_cnp_handled;
    }
  }
  EXPECT_GT(sum.out_of_sequence, 0u);
  EXPECT_GT(sum.duplicate_request, 0u);
  EXPECT_GT(sum.implied_nak_seq_err, 0u);
  EXPECT_GT(sum.packet_seq_err, 0u);
  EXPECT_GT(sum.rnr_nak_retry_err, 0u);
  EXPECT_GT(sum.local_ack_timeout_err, 0u);
  EXPECT_GT(sum.roce_adp_retrans, 0u);
  EXPECT_GT(sum.retransmitted_packets, 0u);
  EXPECT_GT(sum.rx_write_requests, 0u);
  EXPECT_GT(sum.rx_read_requests, 0u);
  EXPECT_GT(sum.rx_atomic_requests, 0u);
  EXPECT_GT(port.rx_icrc_encapsulated, 0u);
  EXPECT_GT(port.np_ecn_marked_roce_packets, 0u);
  EXPECT_GT(port.rp_cnp_handled, 0u);
}

u64 trace_of(u64 seed) {
  World world(seed);
  RCWorkload work(world, RCPlan::draw(world.prng()));
  (void)work.run(kLongEnough);
  return world.timeline().hash();
}

class Determinism : public ::testing::TestWithParam<u64> {};

TEST_P(Determinism, OneSeedIsOneCourseOfEvents) {
  EXPECT_EQ(trace_of(GetParam()), trace_of(GetParam()));
  EXPECT_NE(trace_of(GetParam()), trace_of(GetParam() + 1'000'000));
}

INSTANTIATE_TEST_SUITE_P(Seeds, Determinism, ::testing::ValuesIn(seeds(40)), seed_name);

}  // namespace
}  // namespace verbena::sim
