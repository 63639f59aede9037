// The effects of responses, silence and time on an RC requester's work. IBTA Vol 1, 9.7.5, 9.7.6,
// 9.9.2.
#include <algorithm>

#include "transport/rc/rc_pair_for_test.h"
#include "wire/ib/ack_timeout.h"
#include "wire/ib/rnr_timer.h"

namespace verbena::test {
namespace {

// --- acknowledgments

TEST(RCCompleterTest, OneAcknowledgeCompletesAllBeforeIt) {
  RCPair pair;
  for (u64 i = 0; i < 5; ++i) pair.write(i, 1500, kFar);
  (void)pair.take_all(pair.a);
  pair.deliver(pair.a, pair.ack(pair.o.psn + 4));  // in the middle of the third
  EXPECT_EQ(outcomes(pair.a.send_cqes),
            (Outcomes{{0, WQEStatus::kSuccess}, {1, WQEStatus::kSuccess}}));
  pair.deliver(pair.a, pair.ack(pair.o.psn + 9));
  EXPECT_EQ(pair.a.send_cqes.size(), 5u);
  EXPECT_EQ(pair.a.engine.next_timer(), Time::never());
}

TEST(RCCompleterTest, GhostAcknowledgesChangeNothing) {
  RCPair pair;
  pair.write(1, 8, kFar);
  pair.write(2, 8, kFar);
  (void)pair.take_all(pair.a);
  pair.deliver(pair.a, pair.ack(pair.o.psn));
  const Time timer = pair.a.engine.next_timer();
  pair.now = pair.now + us(1);
  for (const u32 psn : {pair.o.psn, pair.o.psn - 1, pair.o.psn + 2, pair.o.psn + 0x800000}) {
    pair.deliver(pair.a, pair.ack(psn));
    pair.deliver(pair.a, pair.nak(NAKCode::kRemoteAccessError, psn));
    pair.deliver(pair.a, pair.response(Op::kRDMAReadResponseOnly, psn, 8));
    pair.deliver(pair.a, pair.response(Op::kAtomicAcknowledge, psn));
  }
  EXPECT_EQ(pair.a.send_cqes.size(), 1u);
  EXPECT_EQ(pair.a.engine.next_timer(), timer);
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  EXPECT_EQ(pair.a.qp.state, QPState::kRTS);
}

TEST(RCCompleterTest, AnAcknowledgeBeyondAnOutstandingReadIsAnImpliedNAK) {
  RCPair pair;
  pair.read(1, 2000, kFar);
  pair.write(2, 8, kFar);
  (void)pair.take_all(pair.a);
  pair.deliver(pair.a, pair.ack(pair.o.psn + 2));
  EXPECT_TRUE(pair.a.send_cqes.empty());
  EXPECT_EQ(pair.a.engine.counters().implied_nak_seq_err, 1u);
  EXPECT_EQ(psns_of(pair.take_all(pair.a)), (std::vector<u32>{pair.o.psn, pair.o.psn + 2}));
  pair.deliver(pair.a, pair.ack(pair.o.psn + 2));  // the same gap asks once
  EXPECT_TRUE(pair.take_all(pair.a).empty());
}

// --- READ responses and atomic ACKs. IBTA 9.7.5.1.3, 9.9.2.1 (bad response)

TEST(RCCompleterTest, ALostReadResponseIsAskedForFromItsPSNOn) {
  // As in tests/captures/rxe-rc-lost-response.pcap.
  RCPair pair;
  pair.read(1, 4096, kFar);
  pair.deliver_all(pair.b, pair.take_all(pair.a));
  std::vector<Packet> responses = pair.take_all(pair.b);
  ASSERT_EQ(responses.size(), 4u);
  pair.deliver(pair.a, responses[0]);
  pair.deliver(pair.a, responses[2]);
  pair.deliver(pair.a, responses[3]);
  const std::vector<Packet> again = pair.take_all(pair.a);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].psn(), pair.o.psn + 1);
  EXPECT_EQ(again[0].headers.reth, (RETH{pair.b.address(kFar + 1024), pair.b.keys.r_key, 3072}));
  pair.deliver(pair.b, again[0]);
  responses = pair.take_all(pair.b);
  EXPECT_EQ(psns_of(responses), (std::vector<u32>{pair.o.psn + 1, pair.o.psn + 2, pair.o.psn + 3}));
  pair.deliver_all(pair.a, responses);
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kSuccess}}));
  EXPECT_EQ(pair.a.bytes(0, 4096), pair.b.bytes(kFar, 4096));
}

TEST(RCCompleterTest, AnswersThatBeginWithMiddleAreTaken) {  // as rxe sends them
  RCPair pair;
  pair.read(1, 3072, kFar);
  (void)pair.take_all(pair.a);
  pair.deliver(pair.a, pair.response(Op::kRDMAReadResponseFirst, pair.o.psn, 1024));
  pair.fire_timer(pair.a);
  (void)pair.take_all(pair.a);
  pair.deliver(pair.a, pair.response(Op::kRDMAReadResponseMiddle, pair.o.psn + 1, 1024));
  pair.deliver(pair.a, pair.response(Op::kRDMAReadResponseLast, pair.o.psn + 2, 1024));
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kSuccess}}));
}

class RCBadResponse : public ::testing::TestWithParam<std::size_t> {};
TEST_P(RCBadResponse, AReadResponseOfTheWrongLengthEndsTheQP) {
  RCPair pair;
  pair.read(1, 2000, kFar, 64);
  const std::vector<u8> before = pair.a.buffer;
  (void)pair.take_all(pair.a);
  pair.deliver(pair.a, pair.response(Op::kRDMAReadResponseFirst, pair.o.psn, GetParam()));
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kBadResponse}}));
  EXPECT_EQ(pair.a.buffer, before);
}
INSTANTIATE_TEST_SUITE_P(Lengths, RCBadResponse, ::testing::Values(0u, 1u, 1023u, 1025u, 4096u));

TEST(RCCompleterTest, TheWrongKindOfResponseEndsTheQP) {
  {
    RCPair pair;
    pair.read(1, 8, kFar);
    (void)pair.take_all(pair.a);
    pair.deliver(pair.a, pair.response(Op::kAtomicAcknowledge, pair.o.psn));
    EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kBadResponse}}));
  }
  {
    RCPair pair;
    pair.fetch_add(1, 1, kFar);
    (void)pair.take_all(pair.a);
    pair.deliver(pair.a, pair.response(Op::kRDMAReadResponseOnly, pair.o.psn, 8));
    EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kBadResponse}}));
  }
  {
    RCPair pair;
    pair.write(1, 8, kFar);
    (void)pair.take_all(pair.a);
    pair.deliver(pair.a, pair.response(Op::kRDMAReadResponseOnly, pair.o.psn, 8));
    EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kBadResponse}}));
  }
}

TEST(RCCompleterTest, AnAtomicBringsTheOriginalInHostOrder) {
  RCPair pair;
  pair.b.set_word(kFar, 0x0123456789abcdef);
  pair.fetch_add(1, 0x10, kFar, 64);
  pair.settle();
  EXPECT_EQ(pair.a.word(64), 0x0123456789abcdefu);
  EXPECT_EQ(pair.b.word(kFar), 0x0123456789abcdffu);
  EXPECT_EQ(pair.a.send_cqes.at(0).byte_length, 8u);

  SendWR wr = pair.with_remote(signaled(make_wr(SendOp::kCompareSwap, 2)), kFar);
  wr.compare = 0x0123456789abcdff;
  wr.swap_or_add = 42;
  pair.must_post(pair.a, wr, 64, 8);
  pair.settle();
  EXPECT_EQ(pair.a.word(64), 0x0123456789abcdffu);
  EXPECT_EQ(pair.b.word(kFar), 42u);
  pair.must_post(pair.a, wr, 64, 8);  // does not match any more
  pair.settle();
  EXPECT_EQ(pair.a.word(64), 42u);
  EXPECT_EQ(pair.b.word(kFar), 42u);
}

// --- NAKs

TEST(RCCompleterTest, ANAKSequenceErrorGoesBackToItsPSN) {
  RCPair pair;
  for (u64 i = 0; i < 4; ++i) pair.write(i, 8, kFar);
  (void)pair.take_all(pair.a);
  pair.deliver(pair.a, pair.nak(NAKCode::kPSNSequenceError, pair.o.psn + 2));
  EXPECT_EQ(pair.a.send_cqes.size(), 2u);  // what came before is acknowledged
  EXPECT_EQ(psns_of(pair.take_all(pair.a)), (std::vector<u32>{pair.o.psn + 2, pair.o.psn + 3}));
  EXPECT_EQ(pair.a.engine.counters().packet_seq_err, 1u);
  EXPECT_EQ(pair.a.engine.counters().retransmitted_packets, 2u);
}

struct NAKCase {
  NAKCode code;
  WQEStatus status;
};
class RCFatalNAK : public ::testing::TestWithParam<NAKCase> {};
TEST_P(RCFatalNAK, EndsTheWorkItNamesAndFlushesTheRest) {
  RCPair pair;
  for (u64 i = 0; i < 4; ++i) pair.write(i, 8, kFar);
  (void)pair.take_all(pair.a);
  pair.deliver(pair.a, pair.nak(GetParam().code, pair.o.psn + 1));
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{0, WQEStatus::kSuccess},
                                                  {1, GetParam().status},
                                                  {2, WQEStatus::kFlushed},
                                                  {3, WQEStatus::kFlushed}}));
  EXPECT_EQ(pair.a.events, (std::vector<EngineEvent>{EngineEvent::kFatal}));
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  EXPECT_EQ(pair.a.engine.next_timer(), Time::never());
}
INSTANTIATE_TEST_SUITE_P(
    Codes, RCFatalNAK,
    ::testing::Values(NAKCase{NAKCode::kInvalidRequest, WQEStatus::kRemoteInvalidRequest},
                      NAKCase{NAKCode::kRemoteAccessError, WQEStatus::kRemoteAccess},
                      NAKCase{NAKCode::kRemoteOperationalError, WQEStatus::kRemoteOperational},
                      NAKCase{NAKCode::kInvalidRDRequest, WQEStatus::kBadResponse},
                      NAKCase{static_cast<NAKCode>(17), WQEStatus::kBadResponse}));

// --- RNR. IBTA 9.7.5.2.8, table 45

class RCRNRTimer : public ::testing::TestWithParam<int> {};
TEST_P(RCRNRTimer, IsWaitedOutExactly) {
  const u8 code = static_cast<u8>(GetParam());
  RCPair pair;
  pair.send(1, 8);
  (void)pair.take_all(pair.a);
  pair.deliver(pair.a, pair.rnr_nak(code, pair.o.psn));
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  EXPECT_EQ(pair.a.engine.next_timer(), pair.now + rnr_timer(code));
  pair.now = pair.a.engine.next_timer() - ps(1);
  pair.a.engine.on_timer(pair.now);
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  pair.now = pair.now + ps(1);
  pair.a.engine.on_timer(pair.now);
  EXPECT_EQ(psns_of(pair.take_all(pair.a)), (std::vector<u32>{pair.o.psn}));
}
INSTANTIATE_TEST_SUITE_P(AllCodes, RCRNRTimer, ::testing::Range(0, 32));

class RCRNRRetry : public ::testing::TestWithParam<int> {};
TEST_P(RCRNRRetry, CountsTheTriesExactly) {  // rnr_retry 3: four tries, as rxe-rc-rnr-exhausted
  const u8 retry = static_cast<u8>(GetParam());
  RCPair pair({.rnr_retry_count = retry});
  pair.send(1, 8);
  const u32 limit = retry == 7 ? 500 : retry + 1u;
  for (u32 tries = 1; tries <= limit; ++tries) {
    ASSERT_EQ(pair.take_all(pair.a).size(), 1u) << tries;
    pair.deliver(pair.a, pair.rnr_nak(1, pair.o.psn));
    if (tries < limit) {
      ASSERT_TRUE(pair.a.send_cqes.empty()) << tries;
      pair.fire_timer(pair.a);
    }
  }
  if (retry == 7) {
    EXPECT_TRUE(pair.a.send_cqes.empty());
  } else {
    EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kRNRRetryExceeded}}));
  }
  EXPECT_EQ(pair.a.engine.counters().rnr_nak_retry_err, limit);
}
INSTANTIATE_TEST_SUITE_P(AllCounts, RCRNRRetry, ::testing::Range(0, 8));

TEST(RCCompleterTest, ProgressRestoresTheRNRRetries) {
  RCPair pair({.rnr_retry_count = 1});
  for (u64 i = 0; i < 5; ++i) {
    pair.send(i, 8);
    (void)pair.take_all(pair.a);
    pair.deliver(pair.a, pair.rnr_nak(1, pair.o.psn + static_cast<u32>(i)));
    pair.fire_timer(pair.a);
    (void)pair.take_all(pair.a);
    pair.deliver(pair.a, pair.ack(pair.o.psn + static_cast<u32>(i)));
  }
  EXPECT_EQ(pair.a.send_cqes.size(), 5u);
  EXPECT_EQ(pair.a.qp.state, QPState::kRTS);
}

TEST(RCCompleterTest, ARNRNAKThatArrivesTwiceCountsOnce) {
  RCPair pair({.rnr_retry_count = 1});
  pair.send(1, 8);
  (void)pair.take_all(pair.a);
  pair.deliver(pair.a, pair.rnr_nak(1, pair.o.psn));
  pair.deliver(pair.a, pair.rnr_nak(1, pair.o.psn));
  EXPECT_EQ(pair.a.qp.state, QPState::kRTS);
}

TEST(RCCompleterTest, WhatWasSentBehindTheRNRIsSentAgainAfterTheWait) {
  RCPair pair;
  for (u64 i = 0; i < 3; ++i) pair.send(i, 8);
  (void)pair.take_all(pair.a);
  pair.deliver(pair.a, pair.rnr_nak(1, pair.o.psn + 1));
  EXPECT_EQ(pair.a.send_cqes.size(), 1u);
  pair.fire_timer(pair.a);
  EXPECT_EQ(psns_of(pair.take_all(pair.a)), (std::vector<u32>{pair.o.psn + 1, pair.o.psn + 2}));
}

TEST(RCCompleterTest, ARNRNAKProvesThatThePeerLives) {
  // Timeouts between RNR NAKs do not add up: retry_cnt counts silence.
  RCPair pair({.retry_count = 1, .rnr_retry_count = 7});
  pair.send(1, 8);
  for (int i = 0; i < 20; ++i) {
    (void)pair.take_all(pair.a);
    pair.fire_timer(pair.a);  // silence
    (void)pair.take_all(pair.a);
    pair.deliver(pair.a, pair.rnr_nak(1, pair.o.psn));
    pair.fire_timer(pair.a);
  }
  EXPECT_TRUE(pair.a.send_cqes.empty());
}

// --- silence. IBTA 9.7.6.1.3, 9.9.2.1.3.1

class RCTimeout : public ::testing::TestWithParam<int> {};
TEST_P(RCTimeout, CountsTheTransmissionsExactly) {  // retry_cnt 3: four, as rxe-rc-silence
  const u8 retry = static_cast<u8>(GetParam());
  RCPair pair({.retry_count = retry});
  pair.send(1, 8);
  for (u32 sent = 1; sent <= retry + 1u; ++sent) {
    ASSERT_EQ(psns_of(pair.take_all(pair.a)), (std::vector<u32>{pair.o.psn})) << sent;
    ASSERT_EQ(pair.a.engine.next_timer(), pair.now + *ack_timeout(14));
    ASSERT_TRUE(pair.a.send_cqes.empty());
    pair.fire_timer(pair.a);
  }
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kRetryExceeded}}));
  EXPECT_EQ(pair.a.engine.counters().local_ack_timeout_err, retry + 1u);
}
INSTANTIATE_TEST_SUITE_P(AllCounts, RCTimeout, ::testing::Range(0, 8));

TEST(RCCompleterTest, ProgressRestoresTheRetries) {
  RCPair pair({.retry_count = 1});
  for (u64 i = 0; i < 6; ++i) pair.write(i, 8, kFar);
  for (u32 i = 0; i < 6; ++i) {
    (void)pair.take_all(pair.a);
    pair.fire_timer(pair.a);
    (void)pair.take_all(pair.a);
    pair.deliver(pair.a, pair.ack(pair.o.psn + i));
  }
  EXPECT_EQ(pair.a.send_cqes.size(), 6u);
  EXPECT_EQ(pair.a.qp.state, QPState::kRTS);
}

TEST(RCCompleterTest, ProgressRestartsTheTimer) {
  RCPair pair;
  pair.write(1, 8, kFar);
  pair.write(2, 8, kFar);
  (void)pair.take_all(pair.a);
  pair.now = pair.now + ms(20);
  pair.deliver(pair.a, pair.ack(pair.o.psn));
  EXPECT_EQ(pair.a.engine.next_timer(), pair.now + *ack_timeout(14));
}

TEST(RCCompleterTest, TimeoutZeroWaitsForEver) {
  RCPair pair({.ack_timeout = 0});
  pair.send(1, 8);
  (void)pair.take_all(pair.a);
  EXPECT_EQ(pair.a.engine.next_timer(), Time::never());
}

TEST(RCCompleterTest, TheDriversFloorLiesUnderTheTimeout) {
  RCPair pair({.ack_timeout = 1, .limits = {.path = {.min_ack_timeout = ms(2)}}});
  pair.send(1, 8);
  (void)pair.take_all(pair.a);
  EXPECT_EQ(pair.a.engine.next_timer(), pair.now + ms(2));
}

TEST(RCCompleterTest, AnEarlyTimerCallDoesNothing) {
  RCPair pair;
  pair.send(1, 8);
  (void)pair.take_all(pair.a);
  pair.a.engine.on_timer(pair.a.engine.next_timer() - ps(1));
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  EXPECT_EQ(pair.a.engine.counters().local_ack_timeout_err, 0u);
}

TEST(RCCompleterTest, AnAcknowledgeOvertakesTheRetransmission) {
  RCPair pair;
  for (u64 i = 0; i < 4; ++i) pair.write(i, 8, kFar);
  (void)pair.take_all(pair.a);
  pair.fire_timer(pair.a);
  (void)pair.take(pair.a);  // the first goes again; then the late ACK for three comes
  pair.deliver(pair.a, pair.ack(pair.o.psn + 2));
  EXPECT_EQ(pair.a.send_cqes.size(), 3u);
  EXPECT_EQ(psns_of(pair.take_all(pair.a)), (std::vector<u32>{pair.o.psn + 3}));
}

TEST(RCCompleterTest, ALossHalvesTheWindowAndAcknowledgesOpenItAgain) {
  RCPair pair({.limits = {.path = software_path(64)}});
  pair.write(1, 200 * 1024, 0);
  EXPECT_EQ(pair.take_all(pair.a).size(), 64u);
  pair.deliver(pair.a, pair.nak(NAKCode::kPSNSequenceError, pair.o.psn));
  EXPECT_EQ(pair.take_all(pair.a).size(), 32u);
  pair.settle();
  pair.deliver(pair.a, pair.ack(pair.o.psn + 31));
  pair.settle();
  EXPECT_TRUE(pair.a.send_cqes.empty());  // b had lost the rest
}

// As RCLimits are without allowances for sockets.
TEST(RCCompleterTest, ANICHasNoWindowAndALossMakesNone) {
  RCPair pair({.limits = RCLimits{}});
  pair.write(1, 200 * 1024, 0);
  EXPECT_EQ(pair.take_all(pair.a).size(), 200u);
  EXPECT_GT(pair.a.engine.next_timer(), pair.now + ms(60));  // the ACK timeout of 67 ms: no probe
  pair.deliver(pair.a, pair.nak(NAKCode::kPSNSequenceError, pair.o.psn));
  EXPECT_EQ(pair.take_all(pair.a).size(), 200u);
  pair.fire_timer(pair.a);
  EXPECT_EQ(pair.take_all(pair.a).size(), 200u);
}

}  // namespace
}  // namespace verbena::test
