// An RC requester's probes in silence, before its ACK timeout: transport/rc/probe_timer.h.
#include "transport/rc/rc_pair_for_test.h"
#include "wire/ib/ack_timeout.h"

namespace verbena::test {
namespace {

constexpr Duration kFloor = ms(1);
const RCLimits kProbing{.path = software_path(1024, kFloor)};

RCOptions probing() { return {.limits = kProbing}; }

TEST(RCProbeTest, ALostAcknowledgeIsAskedForAgain) {
  RCPair pair(probing());
  pair.write(1, 3000, kFar);
  pair.deliver_all(pair.b, pair.take_all(pair.a));
  (void)pair.take_all(pair.b);  // lost
  ASSERT_TRUE(pair.fire_timer(pair.a));
  const std::vector<Packet> probe = pair.take_all(pair.a);
  ASSERT_EQ(psns_of(probe), (std::vector<u32>{pair.o.psn}));
  EXPECT_TRUE(probe[0].headers.bth.ack_req);
  EXPECT_EQ(probe[0].payload.size(), 1024u);
  pair.deliver_all(pair.b, probe);
  pair.settle();
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kSuccess}}));
  EXPECT_EQ(pair.a.engine.counters().roce_adp_retrans, 1u);
  EXPECT_EQ(pair.a.engine.counters().retransmitted_packets, 1u);
  EXPECT_EQ(pair.a.engine.counters().local_ack_timeout_err, 0u);
  EXPECT_EQ(pair.a.engine.next_timer(), Time::never());
}

TEST(RCProbeTest, WhenNothingFollowsTheAnswerToTheProbeTheRestIsLost) {
  RCPair pair(probing());
  for (u64 i = 0; i < 4; ++i) pair.write(i, 8, kFar);
  const std::vector<Packet> packets = pair.take_all(pair.a);
  pair.deliver(pair.b, packets[0]);
  pair.settle();
  ASSERT_TRUE(pair.fire_timer(pair.a));
  const std::vector<Packet> probe = pair.take_all(pair.a);
  ASSERT_EQ(psns_of(probe), (std::vector<u32>{pair.o.psn + 1}));
  pair.deliver_all(pair.b, probe);
  pair.deliver_all(pair.a, pair.take_all(pair.b));
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  EXPECT_LT(pair.a.engine.next_timer(), pair.now + kFloor);  // the peer is awake
  ASSERT_TRUE(pair.fire_timer(pair.a));
  EXPECT_EQ(psns_of(pair.take_all(pair.a)), (std::vector<u32>{pair.o.psn + 2, pair.o.psn + 3}));
  EXPECT_EQ(pair.a.engine.counters().local_ack_timeout_err, 0u);
}

TEST(RCProbeTest, APeerThatWasOnlyLateIsNotSentEverythingAgain) {
  RCPair pair(probing());
  pair.write(0, 8, kFar);
  pair.settle();
  for (u64 i = 1; i < 5; ++i) pair.write(i, 8, kFar);
  (void)pair.take_all(pair.a);
  ASSERT_TRUE(pair.fire_timer(pair.a));
  EXPECT_EQ(pair.take_all(pair.a).size(), 1u);
  for (u32 i = 1; i < 5; ++i) {
    pair.deliver(pair.a, pair.ack(pair.o.psn + i));
    EXPECT_TRUE(pair.take_all(pair.a).empty());
  }
  EXPECT_EQ(pair.a.engine.next_timer(), Time::never());
}

TEST(RCProbeTest, LostReadsAfterTheOneProbedAreAskedForTogether) {
  RCPair pair(probing());
  pair.fetch_add(0, 1, kFar);
  pair.settle();
  for (u64 i = 1; i < 4; ++i) pair.read(i, 2000, kFar);
  (void)pair.take_all(pair.a);
  ASSERT_TRUE(pair.fire_timer(pair.a));
  const std::vector<Packet> probe = pair.take_all(pair.a);
  ASSERT_EQ(psns_of(probe), (std::vector<u32>{pair.o.psn + 1}));
  pair.deliver_all(pair.b, probe);
  pair.deliver_all(pair.a, pair.take_all(pair.b));
  ASSERT_TRUE(pair.fire_timer(pair.a));
  EXPECT_EQ(psns_of(pair.take_all(pair.a)), (std::vector<u32>{pair.o.psn + 3, pair.o.psn + 5}));
}

TEST(RCProbeTest, WhatWasSentAfterTheProbeIsNotTakenForLost) {
  RCPair pair(probing());
  pair.write(1, 8, kFar);
  (void)pair.take_all(pair.a);
  ASSERT_TRUE(pair.fire_timer(pair.a));
  const std::vector<Packet> probe = pair.take_all(pair.a);
  pair.write(2, 8, kFar);
  (void)pair.take_all(pair.a);
  pair.deliver_all(pair.b, probe);
  pair.deliver_all(pair.a, pair.take_all(pair.b));
  EXPECT_EQ(pair.a.send_cqes.size(), 1u);
  EXPECT_TRUE(pair.take_all(pair.a).empty());
}

TEST(RCProbeTest, ALostNAKIsMadeGood) {  // a responder sends one for one gap. IBTA 9.7.5.2.8
  RCPair pair(probing());
  for (u64 i = 0; i < 3; ++i) pair.write(i, 8, kFar);
  const std::vector<Packet> packets = pair.take_all(pair.a);
  pair.deliver(pair.b, packets[0]);
  pair.settle();
  pair.deliver(pair.b, packets[2]);
  EXPECT_TRUE(pair.take_all(pair.b).at(0).is_nak(NAKCode::kPSNSequenceError));  // lost
  while (pair.fire_timer(pair.a)) pair.settle();
  EXPECT_EQ(pair.a.send_cqes.size(), 3u);
  EXPECT_EQ(pair.a.engine.counters().packet_seq_err, 0u);
}

TEST(RCProbeTest, AnAtomicIsExecutedOnce) {
  RCPair pair(probing());
  pair.b.set_word(kFar, 40);
  pair.fetch_add(1, 2, kFar, 64);
  pair.deliver_all(pair.b, pair.take_all(pair.a));
  (void)pair.take_all(pair.b);  // lost
  ASSERT_TRUE(pair.fire_timer(pair.a));
  pair.settle();
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kSuccess}}));
  EXPECT_EQ(pair.a.word(64), 40u);
  EXPECT_EQ(pair.b.word(kFar), 42u);
}

TEST(RCProbeTest, AReadIsAskedForFromWhereItStopped) {
  RCPair pair(probing());
  pair.read(1, 4096, kFar);
  pair.deliver_all(pair.b, pair.take_all(pair.a));
  const std::vector<Packet> responses = pair.take_all(pair.b);
  pair.deliver(pair.a, responses[0]);
  pair.deliver(pair.a, responses[1]);
  ASSERT_TRUE(pair.fire_timer(pair.a));
  const std::vector<Packet> probe = pair.take_all(pair.a);
  ASSERT_EQ(psns_of(probe), (std::vector<u32>{pair.o.psn + 2}));
  EXPECT_EQ(probe[0].headers.reth, (RETH{pair.b.address(kFar + 2048), pair.b.keys.r_key, 2048}));
  pair.deliver_all(pair.b, probe);
  pair.settle();
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kSuccess}}));
  EXPECT_EQ(pair.a.bytes(0, 4096), pair.b.bytes(kFar, 4096));
}

class RCProbesAndTimeout : public ::testing::TestWithParam<int> {};
TEST_P(RCProbesAndTimeout, SilenceEndsTheQPWhenItWouldHaveWithoutProbes) {
  RCPair pair({.retry_count = static_cast<u8>(GetParam()), .limits = kProbing});
  pair.send(1, 8);
  (void)pair.take_all(pair.a);
  const Time start = pair.now;
  while (pair.a.send_cqes.empty()) {
    ASSERT_TRUE(pair.fire_timer(pair.a));
    (void)pair.take_all(pair.a);
  }
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kRetryExceeded}}));
  EXPECT_EQ(pair.now, start + *ack_timeout(14) * (GetParam() + 1));
  EXPECT_EQ(pair.a.engine.counters().local_ack_timeout_err, GetParam() + 1u);
  EXPECT_GT(pair.a.engine.counters().roce_adp_retrans, 1u);
  EXPECT_LE(pair.a.engine.counters().roce_adp_retrans, ProbeTimer::kMaxProbes);
}
INSTANTIATE_TEST_SUITE_P(AllCounts, RCProbesAndTimeout, ::testing::Range(0, 8));

TEST(RCProbeTest, WithoutAnAckTimeoutAFewProbesGoAndTheQPWaitsForEver) {
  RCPair pair({.ack_timeout = 0, .limits = kProbing});
  pair.send(1, 8);
  (void)pair.take_all(pair.a);
  u32 probes = 0;
  while (pair.fire_timer(pair.a)) probes += static_cast<u32>(pair.take_all(pair.a).size());
  EXPECT_EQ(probes, ProbeTimer::kMaxProbes);
  EXPECT_TRUE(pair.a.send_cqes.empty());
  EXPECT_EQ(pair.a.qp.state, QPState::kRTS);
}

TEST(RCProbeTest, AnRNRWaitIsNoSilence) {
  RCPair pair(probing());
  pair.send(1, 8);
  (void)pair.take_all(pair.a);
  pair.deliver(pair.a, pair.rnr_nak(0, pair.o.psn));  // 655 ms
  EXPECT_GT(pair.a.engine.next_timer(), pair.now + ms(600));
}

TEST(RCProbeTest, NewsBeforeTheProbeIsSentMakesItNeedless) {
  RCPair pair(probing());
  pair.write(1, 8, kFar);
  pair.write(2, 8, kFar);
  (void)pair.take_all(pair.a);
  ASSERT_TRUE(pair.fire_timer(pair.a));
  pair.deliver(pair.a, pair.ack(pair.o.psn));
  EXPECT_TRUE(pair.take_all(pair.a).empty());
}

TEST(RCProbeTest, MemoryThatIsGoneFailsTheWork) {
  RCPair pair(probing());
  pair.write(1, 8, kFar);
  (void)pair.take_all(pair.a);
  ASSERT_EQ(pair.a.memory.deregister_mr(pair.a.keys.l_key), Status::kOk);
  ASSERT_TRUE(pair.fire_timer(pair.a));
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kLocalProtection}}));
}

}  // namespace
}  // namespace verbena::test
