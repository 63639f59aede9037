// Both halves of RC together: states, flush, order between them. IBTA Vol 1, 10.3.1, 9.7.
#include "transport/rc/engine.h"

#include "transport/rc/rc_pair_for_test.h"

namespace verbena::test {
namespace {

// --- Error: flush in order. IBTA 10.3.1.7

TEST(RCEngineTest, EnteringErrorFlushesBothQueuesInOrder) {
  RCPair pair;
  pair.write(1, 8, kFar);
  pair.settle();
  for (u64 i = 2; i < 5; ++i) pair.write(i, 8, kFar);
  ASSERT_EQ(pair.a.post_receive(10, {pair.a.sge(0, 8)}, pair.now), PostError::kOk);
  ASSERT_EQ(pair.a.post_receive(11, {pair.a.sge(0, 8)}, pair.now), PostError::kOk);
  (void)pair.take(pair.a);
  pair.a.set_state(QPState::kError, pair.now);
  pair.drain(pair.a);
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kSuccess},
                                                  {2, WQEStatus::kFlushed},
                                                  {3, WQEStatus::kFlushed},
                                                  {4, WQEStatus::kFlushed}}));
  EXPECT_EQ(outcomes(pair.a.receive_cqes),
            (Outcomes{{10, WQEStatus::kFlushed}, {11, WQEStatus::kFlushed}}));
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  EXPECT_EQ(pair.a.engine.next_timer(), Time::never());
}

TEST(RCEngineTest, AReceivePostedInErrorIsFlushed) {
  RCPair pair;
  pair.b.set_state(QPState::kError, pair.now);
  pair.receive(1, kFar, 8);
  pair.drain(pair.b);
  EXPECT_EQ(outcomes(pair.b.receive_cqes), (Outcomes{{1, WQEStatus::kFlushed}}));
}

TEST(RCEngineTest, AnSRQIsNotFlushed) {
  RCPair pair({.shared_receive_queue = true});
  pair.receive(1, kFar, 8);
  pair.b.set_state(QPState::kError, pair.now);
  pair.drain(pair.b);
  EXPECT_TRUE(pair.b.receive_cqes.empty());
  EXPECT_EQ(pair.b.receive_queue.size(), 1u);
}

TEST(RCEngineTest, AReceiveHalfFilledIsFlushedFirst) {
  for (const bool shared : {false, true}) {
    RCPair pair({.shared_receive_queue = shared});
    pair.receive(1, kFar, 4096);
    pair.receive(2, kFar, 4096);
    pair.deliver(pair.b, pair.request(Op::kSendFirst, pair.o.psn, 1024));
    pair.b.set_state(QPState::kError, pair.now);
    pair.drain(pair.b);
    Outcomes expected = {{1, WQEStatus::kFlushed}};
    if (!shared) expected.emplace_back(2, WQEStatus::kFlushed);
    EXPECT_EQ(outcomes(pair.b.receive_cqes), expected);
  }
}

TEST(RCEngineTest, ARemoteErrorTakesDownBothEndsWithTheRightCodes) {
  RCPair pair;
  pair.receive(1, kFar, 8);
  pair.write(1, 8, kFar);
  SendWR bad = pair.with_remote(signaled(make_wr(SendOp::kRDMAWrite, 2)), kFar);
  bad.r_key.value ^= 0xff00;
  pair.must_post(pair.a, bad, 0, 8);
  pair.write(3, 8, kFar);
  pair.settle();
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kSuccess},
                                                  {2, WQEStatus::kRemoteAccess},
                                                  {3, WQEStatus::kFlushed}}));
  EXPECT_EQ(outcomes(pair.b.receive_cqes), (Outcomes{{1, WQEStatus::kFlushed}}));
  EXPECT_EQ(pair.b.events,
            (std::vector<EngineEvent>{EngineEvent::kAccessError, EngineEvent::kFatal}));
}

TEST(RCEngineTest, ResetForgetsEverythingAndTheQPServesAgain) {
  RCPair pair;
  pair.receive(1, kFar, 8192);
  pair.receive(2, kFar, 8192);
  pair.send(1, 5000);
  pair.read(2, 5000, kFar);
  const std::vector<Packet> requests = pair.take_all(pair.a);
  pair.deliver(pair.b, requests[0]);  // half a SEND has arrived
  for (Side* side : {&pair.a, &pair.b}) {
    side->set_state(QPState::kError, pair.now);
    pair.drain(*side);
    side->set_state(QPState::kReset, pair.now);
    pair.drain(*side);
    EXPECT_TRUE(pair.take_all(*side).empty());
    EXPECT_EQ(side->engine.next_timer(), Time::never());
    side->send_cqes.clear();
    side->receive_cqes.clear();
  }
  pair.connect();
  pair.receive(7, kFar, 64);
  pair.send(8, 64);
  pair.read(9, 64, kFar, 128);
  pair.settle();
  EXPECT_EQ(outcomes(pair.a.send_cqes),
            (Outcomes{{8, WQEStatus::kSuccess}, {9, WQEStatus::kSuccess}}));
  EXPECT_EQ(outcomes(pair.b.receive_cqes), (Outcomes{{7, WQEStatus::kSuccess}}));
}

TEST(RCEngineTest, ResetLeavesNoCQEs) {
  RCPair pair;
  pair.receive(1, kFar, 64);
  pair.send(1, 64);
  (void)pair.take_all(pair.a);
  pair.a.set_state(QPState::kReset, pair.now);
  pair.b.set_state(QPState::kReset, pair.now);
  pair.drain(pair.a);
  pair.drain(pair.b);
  EXPECT_TRUE(pair.a.send_cqes.empty());
  EXPECT_TRUE(pair.b.receive_cqes.empty());
  EXPECT_TRUE(pair.b.receive_queue.empty());
}

// --- SQD. IBTA 10.3.1.5

TEST(RCEngineTest, SQDEndsWhatHasBegunStartsNothingAndTellsOnce) {
  RCPair pair({.limits = {.path = software_path(8)}});
  pair.write(1, 12 * 1024, 0);
  pair.write(2, 8, kFar);
  std::vector<Packet> packets = pair.take_all(pair.a);
  ASSERT_EQ(packets.size(), 8u);
  pair.a.set_state(QPState::kSQD, pair.now);
  pair.write(3, 8, kFar);
  EXPECT_TRUE(pair.a.events.empty());
  pair.deliver_all(pair.b, packets);
  pair.settle();
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kSuccess}}));
  EXPECT_EQ(pair.a.events, (std::vector<EngineEvent>{EngineEvent::kSQDrained}));
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  pair.a.set_state(QPState::kRTS, pair.now);
  pair.settle();
  EXPECT_EQ(pair.a.send_cqes.size(), 3u);
  EXPECT_EQ(pair.a.events.size(), 1u);
}

TEST(RCEngineTest, SQDWaitsForUnsignaledWorkToo) {
  RCPair pair;
  pair.must_post(pair.a, pair.with_remote(make_wr(SendOp::kRDMAWrite, 1), kFar), 0, 8);
  pair.must_post(pair.a, pair.with_remote(make_wr(SendOp::kRDMAWrite, 2), kFar), 0, 8);
  (void)pair.take(pair.a);  // the first goes, without BTH.A; it is lost
  pair.a.set_state(QPState::kSQD, pair.now);
  pair.settle();
  EXPECT_EQ(pair.a.events, (std::vector<EngineEvent>{EngineEvent::kSQDrained}));
}

TEST(RCEngineTest, SQDIsDrainedAtOnceWhenNothingHasBegun) {
  RCPair pair;
  pair.a.set_state(QPState::kSQD, pair.now);
  pair.drain(pair.a);
  EXPECT_EQ(pair.a.events, (std::vector<EngineEvent>{EngineEvent::kSQDrained}));
}

TEST(RCEngineTest, TheFirstPacketInRTREstablishesTheCommunication) {
  RCPair pair;
  pair.b.set_state(QPState::kReset, pair.now);
  pair.b.set_state(QPState::kInit, pair.now);
  pair.b.set_state(QPState::kRTR, pair.now);
  pair.write(1, 8, kFar);
  pair.write(2, 8, kFar);
  pair.settle();
  EXPECT_EQ(pair.b.events, (std::vector<EngineEvent>{EngineEvent::kCommunicationEstablished}));
  EXPECT_EQ(pair.a.send_cqes.size(), 2u);  // a responder works in RTR
}

// --- whole scenarios of the captures

TEST(RCEngineTest, LostRequest) {  // tests/captures/rxe-rc-lost-request.pcap
  RCPair pair;
  for (u64 i = 0; i < 6; ++i) {
    pair.receive(i, kFar + 64 * i, 64);
    pair.send(i, 64, 64 * i);
  }
  std::vector<Packet> packets = pair.take_all(pair.a);
  packets.erase(packets.begin() + 2);
  pair.deliver_all(pair.b, packets);
  pair.settle();
  EXPECT_EQ(pair.a.send_cqes.size(), 6u);
  EXPECT_EQ(pair.b.receive_cqes.size(), 6u);
  EXPECT_EQ(pair.b.bytes(kFar, 384), pair.a.bytes(0, 384));
  EXPECT_EQ(pair.a.engine.counters().packet_seq_err, 1u);
}

TEST(RCEngineTest, LostAcknowledge) {  // tests/captures/rxe-rc-lost-ack.pcap
  RCPair pair;
  pair.receive(1, kFar, 64);
  pair.receive(2, kFar, 64);
  pair.send(1, 64);
  pair.deliver_all(pair.b, pair.take_all(pair.a));
  const std::vector<Packet> lost = pair.take_all(pair.b);
  ASSERT_EQ(lost.size(), 1u);
  pair.fire_timer(pair.a);
  pair.deliver_all(pair.b, pair.take_all(pair.a));
  const std::vector<Packet> again = pair.take_all(pair.b);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].headers.aeth.msn, lost[0].headers.aeth.msn);
  pair.deliver_all(pair.a, again);
  EXPECT_EQ(pair.a.send_cqes.size(), 1u);
  EXPECT_EQ(pair.b.receive_cqes.size(), 1u);
}

TEST(RCEngineTest, LostAtomicAcknowledge) {  // tests/captures/rxe-rc-lost-response.pcap
  RCPair pair;
  pair.b.set_word(kFar, 10);
  pair.fetch_add(1, 5, kFar);
  pair.deliver_all(pair.b, pair.take_all(pair.a));
  (void)pair.take_all(pair.b);
  pair.fire_timer(pair.a);
  pair.settle();
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kSuccess}}));
  EXPECT_EQ(pair.a.word(0), 10u);
  EXPECT_EQ(pair.b.word(kFar), 15u);
}

TEST(RCEngineTest, RNRUntilTheReceiveComes) {  // tests/captures/rxe-rc-rnr.pcap
  RCPair pair({.rnr_retry_count = 7});
  pair.send(1, 64);
  for (int i = 0; i < 12; ++i) {
    pair.settle();
    ASSERT_TRUE(pair.fire_timer(pair.a));
  }
  pair.receive(1, kFar, 64);
  pair.settle();
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kSuccess}}));
  EXPECT_EQ(pair.a.engine.counters().rnr_nak_retry_err, 12u);
}

TEST(RCEngineTest, LongResponsesDoNotStarveOurOwnRequests) {
  RCPair pair;
  pair.deliver(pair.b, pair.read_request(pair.o.psn, 0, 200 * 1024));
  SendWR wr = make_wr(SendOp::kRDMAWrite, 1);
  wr.remote_address = pair.a.address();
  wr.r_key = pair.a.keys.r_key;
  pair.must_post(pair.b, wr, 0, 8);
  for (int i = 0; i < 40; ++i) {
    if (pair.take(pair.b)->op() == Op::kRDMAWriteOnly) return;
  }
  FAIL() << "40 responses and no request";
}

}  // namespace
}  // namespace verbena::test
