// An RC responder's handling of requests. IBTA Vol 1, 9.7.4, 9.7.5, 9.9.3. The requests are crafted
// by hand, so that they can be wrong in every way.
#include "transport/rc/responder.h"

#include "transport/rc/rc_pair_for_test.h"
#include "wire/ib/credits.h"

namespace verbena::test {
namespace {

struct Responses : RCPair {
  using RCPair::RCPair;
  // Returns b's answer to the packet.
  std::vector<Packet> answer(const Packet& packet) {
    deliver(b, packet);
    return take_all(b);
  }
  // b answers with this NAK, goes to Error, and its memory is as before.
  void expect_refused(const Packet& packet, NAKCode code,
                      const std::vector<EngineEvent>& expected) {
    const std::vector<u8> before = b.buffer;
    const std::vector<Packet> answers = answer(packet);
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_TRUE(answers[0].is_nak(code)) << int{answers[0].headers.aeth.value};
    EXPECT_EQ(answers[0].psn(), packet.psn());
    EXPECT_EQ(b.events, expected);
    EXPECT_EQ(b.qp.state, QPState::kError);
    EXPECT_EQ(b.buffer, before);
    EXPECT_TRUE(answer(request(Op::kRDMAWriteOnly, packet.psn(), 8)).empty());  // silent now
  }
  void expect_invalid(const Packet& packet) {
    expect_refused(packet, NAKCode::kInvalidRequest,
                   {EngineEvent::kRequestError, EngineEvent::kFatal});
  }
  void expect_access_error(const Packet& packet) {
    expect_refused(packet, NAKCode::kRemoteAccessError,
                   {EngineEvent::kAccessError, EngineEvent::kFatal});
  }
  u32 psn(u32 n = 0) const { return o.psn + n; }
};

// --- acknowledgments. IBTA 9.7.5.1.2

TEST(RCResponderTest, AcknowledgesOnlyWhenAsked) {
  Responses pair;
  Packet write = pair.request(Op::kRDMAWriteOnly, pair.psn(), 8);
  write.headers.bth.ack_req = false;
  EXPECT_TRUE(pair.answer(write).empty());
  const std::vector<Packet> answers = pair.answer(pair.request(Op::kRDMAWriteOnly, pair.psn(1), 8));
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_TRUE(answers[0].is_ack());
  EXPECT_EQ(answers[0].psn(), pair.psn(1));
  EXPECT_EQ(answers[0].headers.aeth.msn, MSN(2));
}

TEST(RCResponderTest, AcknowledgesThatWaitAreOne) {
  Responses pair;
  for (u32 i = 0; i < 5; ++i)
    pair.deliver(pair.b, pair.request(Op::kRDMAWriteOnly, pair.psn(i), 8));
  const std::vector<Packet> answers = pair.take_all(pair.b);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].psn(), pair.psn(4));
  EXPECT_EQ(answers[0].headers.aeth.msn, MSN(5));
}

TEST(RCResponderTest, ReadsAndAtomicsKeepTheirPlaceBetweenAcknowledges) {
  Responses pair;
  pair.deliver(pair.b, pair.request(Op::kRDMAWriteOnly, pair.psn(0), 8));
  pair.deliver(pair.b, pair.read_request(pair.psn(1), kFar, 8));
  pair.deliver(pair.b, pair.request(Op::kRDMAWriteOnly, pair.psn(2), 8));
  pair.deliver(pair.b, pair.request(Op::kFetchAdd, pair.psn(3)));
  EXPECT_EQ(psns_of(pair.take_all(pair.b)),
            (std::vector<u32>{pair.psn(0), pair.psn(1), pair.psn(2), pair.psn(3)}));
}

TEST(RCResponderTest, MSNCountsMessagesNotPackets) {
  Responses pair;
  Packet first = pair.request(Op::kRDMAWriteFirst, pair.psn(), 1024);
  first.headers.reth.dma_length = 1025;
  EXPECT_EQ(pair.answer(first).at(0).headers.aeth.msn, MSN(0));
  EXPECT_EQ(pair.answer(pair.request(Op::kRDMAWriteLast, pair.psn(1), 1)).at(0).headers.aeth.msn,
            MSN(1));
}

// --- order. IBTA 9.7.4.1.2, 9.7.5.2.8

TEST(RCResponderTest, OneSequenceNAKForOneExpectedPSN) {
  Responses pair;
  const std::vector<Packet> answers = pair.answer(pair.request(Op::kRDMAWriteOnly, pair.psn(2), 8));
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_TRUE(answers[0].is_nak(NAKCode::kPSNSequenceError));
  EXPECT_EQ(answers[0].psn(), pair.psn());
  EXPECT_TRUE(pair.answer(pair.request(Op::kRDMAWriteOnly, pair.psn(3), 8)).empty());
  EXPECT_TRUE(pair.answer(pair.request(Op::kRDMAWriteOnly, pair.psn(0), 8)).at(0).is_ack());
  EXPECT_TRUE(pair.answer(pair.request(Op::kRDMAWriteOnly, pair.psn(2), 8))
                  .at(0)
                  .is_nak(NAKCode::kPSNSequenceError));
  EXPECT_EQ(pair.b.engine.counters().out_of_sequence, 3u);
}

TEST(RCResponderTest, ExpectedPSNWraps) {
  Responses pair({.psn = 0xffffff});
  EXPECT_EQ(pair.answer(pair.request(Op::kRDMAWriteOnly, 0xffffff, 8)).at(0).psn(), 0xffffffu);
  EXPECT_EQ(pair.answer(pair.request(Op::kRDMAWriteOnly, 0, 8)).at(0).psn(), 0u);
}

TEST(RCResponderTest, ADuplicateSendIsAcknowledgedAndNotDeliveredAgain) {
  Responses pair;
  pair.receive(1, kFar, 64);
  pair.receive(2, kFar, 64);
  (void)pair.answer(pair.request(Op::kSendOnly, pair.psn(0), 8));
  (void)pair.answer(pair.request(Op::kRDMAWriteOnly, pair.psn(1), 8));
  const std::vector<u8> before = pair.b.buffer;
  Packet again = pair.request(Op::kSendOnly, pair.psn(0), 8);
  std::ranges::fill(again.payload, u8{0xee});
  const std::vector<Packet> answers = pair.answer(again);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].psn(), pair.psn(1));  // the newest
  EXPECT_EQ(answers[0].headers.aeth.msn, MSN(2));
  EXPECT_EQ(pair.b.receive_cqes.size(), 1u);
  EXPECT_EQ(pair.b.buffer, before);
  EXPECT_EQ(pair.b.engine.counters().duplicate_request, 1u);
}

TEST(RCResponderTest, ADuplicateReadIsExecutedAgainFromAnyOfItsPSNs) {
  Responses pair;
  ASSERT_EQ(pair.answer(pair.read_request(pair.psn(), kFar, 3000)).size(), 3u);
  pair.b.buffer[kFar + 2048] ^= 0xff;  // the data of now, as 9.7.5.1.2 has it
  const std::vector<Packet> answers =
      pair.answer(pair.read_request(pair.psn(1), kFar + 1024, 1976));
  ASSERT_EQ(psns_of(answers), (std::vector<u32>{pair.psn(1), pair.psn(2)}));
  EXPECT_EQ(answers[0].payload, pair.b.bytes(kFar + 1024, 1024));
  EXPECT_EQ(answers[1].payload, pair.b.bytes(kFar + 2048, 952));
  EXPECT_EQ(answers[1].headers.aeth.msn, MSN(1));
}

TEST(RCResponderTest, ADuplicateReadOutsideTheOriginalIsIgnored) {
  Responses pair;
  (void)pair.answer(pair.read_request(pair.psn(), kFar, 3000));
  EXPECT_TRUE(pair.answer(pair.read_request(pair.psn(), kFar, 3001)).empty());
  EXPECT_TRUE(pair.answer(pair.read_request(pair.psn(), kFar + 1, 2999)).empty());
  EXPECT_TRUE(pair.answer(pair.read_request(pair.psn(1), kFar, 1000)).empty());
  EXPECT_TRUE(pair.answer(pair.read_request(pair.psn(1), kFar + 1024, 1977)).empty());
  EXPECT_TRUE(pair.answer(pair.read_request(pair.psn() - 1, kFar, 1000)).empty());
  Packet other = pair.read_request(pair.psn(), kFar, 3000);
  other.headers.reth.r_key.value ^= 1;
  EXPECT_TRUE(pair.answer(other).empty());
  EXPECT_EQ(pair.b.qp.state, QPState::kRTS);
}

TEST(RCResponderTest, ARepeatedReadStillBeingAnsweredStartsOver) {
  Responses pair;
  pair.deliver(pair.b, pair.read_request(pair.psn(), kFar, 4096));
  (void)pair.take(pair.b);
  (void)pair.take(pair.b);
  pair.deliver(pair.b, pair.read_request(pair.psn(1), kFar + 1024, 3072));
  EXPECT_EQ(psns_of(pair.take_all(pair.b)),
            (std::vector<u32>{pair.psn(1), pair.psn(2), pair.psn(3)}));
}

TEST(RCResponderTest, AtomicsAreReplayedFromMemoryExactlyOnce) {
  Responses pair;
  pair.b.set_word(0, 100);
  Packet add = pair.request(Op::kFetchAdd, pair.psn());
  add.headers.atomic.swap_or_add = 5;
  EXPECT_EQ(pair.answer(add).at(0).headers.atomic_ack.original_data, 100u);
  pair.b.set_word(0, 7777);
  for (int i = 0; i < 3; ++i) {
    const std::vector<Packet> answers = pair.answer(add);
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers[0].headers.atomic_ack.original_data, 100u);
    EXPECT_EQ(answers[0].headers.aeth.msn, MSN(1));
  }
  EXPECT_EQ(pair.b.word(0), 7777u);
}

TEST(RCResponderTest, AnAtomicOlderThanTheResourcesIsNotAnswered) {
  Responses pair({.max_dest_rd_atomic = 2});
  for (u32 i = 0; i < 3; ++i) (void)pair.answer(pair.request(Op::kFetchAdd, pair.psn(i)));
  EXPECT_TRUE(pair.answer(pair.request(Op::kFetchAdd, pair.psn(0))).empty());
  EXPECT_EQ(pair.answer(pair.request(Op::kFetchAdd, pair.psn(1))).size(), 1u);
}

TEST(RCResponderTest, MoreReadsThanAgreedIsAnInvalidRequest) {
  Responses pair({.max_dest_rd_atomic = 2});
  for (u32 i = 0; i < 3; ++i) pair.deliver(pair.b, pair.read_request(pair.psn(i), kFar, 8));
  const std::vector<Packet> answers = pair.take_all(pair.b);
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_TRUE(answers[2].is_nak(NAKCode::kInvalidRequest));
}

TEST(RCResponderTest, RepeatedReadsDoNotCountAsMoreThanAgreed) {
  // A request that the network delivers twice may still be in the queue when the next one comes.
  Responses pair({.max_dest_rd_atomic = 1});
  (void)pair.answer(pair.read_request(pair.psn(0), kFar, 8));
  pair.deliver(pair.b, pair.read_request(pair.psn(0), kFar, 8));  // late copy
  pair.deliver(pair.b, pair.read_request(pair.psn(1), kFar, 8));  // the requester has gone on
  EXPECT_EQ(ops_of(pair.take_all(pair.b)),
            (std::vector<Op>{Op::kRDMAReadResponseOnly, Op::kRDMAReadResponseOnly}));
  EXPECT_EQ(pair.b.qp.state, QPState::kRTS);
}

TEST(RCResponderTest, AFloodOfReadsOverflowsNothing) {
  Responses pair({.max_dest_rd_atomic = 16});
  for (u32 i = 0; i < 16; ++i) {
    (void)pair.answer(pair.read_request(pair.psn(2 * i), kFar, 8));
    (void)pair.answer(pair.request(Op::kFetchAdd, pair.psn(2 * i + 1)));
  }
  for (u32 round = 0; round < 10; ++round)
    for (u32 i = 8; i < 16; ++i) {
      pair.deliver(pair.b, pair.read_request(pair.psn(2 * i), kFar, 8));
      pair.deliver(pair.b, pair.request(Op::kFetchAdd, pair.psn(2 * i + 1)));
      pair.deliver(pair.b, pair.request(Op::kRDMAWriteOnly, pair.psn(0), 8));
    }
  EXPECT_LE(pair.take_all(pair.b).size(), ResponseQueue::kMaxPending);
}

// --- receives

TEST(RCResponderTest, WithoutAReceiveARNRNAKOncePerTry) {
  Responses pair({.min_rnr_timer = 18});
  std::vector<Packet> answers = pair.answer(pair.request(Op::kSendOnly, pair.psn(), 8));
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_TRUE(answers[0].is_rnr_nak());
  EXPECT_EQ(answers[0].headers.aeth.value, 18);
  EXPECT_EQ(answers[0].psn(), pair.psn());
  EXPECT_TRUE(pair.answer(pair.request(Op::kSendOnly, pair.psn(1), 8)).empty());  // behind it
  EXPECT_TRUE(pair.answer(pair.request(Op::kSendOnly, pair.psn(), 8)).at(0).is_rnr_nak());
  pair.receive(1, kFar, 64);
  answers = pair.answer(pair.request(Op::kSendOnly, pair.psn(), 8));
  EXPECT_TRUE(answers.back().is_ack());
  EXPECT_EQ(pair.b.receive_cqes.size(), 1u);
}

TEST(RCResponderTest, AWriteWithImmediateNeedsItsReceiveAtTheLastPacketOnly) {
  Responses pair;
  Packet first = pair.request(Op::kRDMAWriteFirst, pair.psn(), 1024);
  first.headers.reth.dma_length = 1032;
  EXPECT_TRUE(pair.answer(first).at(0).is_ack());
  Packet last = pair.request(Op::kRDMAWriteLastWithImmediate, pair.psn(1), 8);
  last.headers.imm.value = 0xfeed;
  const std::vector<u8> before = pair.b.bytes(1024, 8);
  EXPECT_TRUE(pair.answer(last).at(0).is_rnr_nak());
  EXPECT_EQ(pair.b.bytes(1024, 8), before);
  pair.receive(4, kFar, 0);
  EXPECT_TRUE(pair.answer(last).back().is_ack());
  ASSERT_EQ(pair.b.receive_cqes.size(), 1u);
  const CQE& cqe = pair.b.receive_cqes[0];
  EXPECT_EQ(cqe.op, CompletionOp::kReceiveRDMAWithImmediate);
  EXPECT_TRUE(cqe.with_immediate);
  EXPECT_EQ(cqe.immediate, 0xfeedu);
  EXPECT_EQ(cqe.byte_length, 1032u);
  EXPECT_EQ(pair.b.bytes(1024, 8), last.payload);  // the data was there before the CQE
}

TEST(RCResponderTest, AWriteOnlyWithImmediateIsRefusedWholeWithoutAReceive) {
  Responses pair;
  const std::vector<u8> before = pair.b.buffer;
  const Packet write = pair.request(Op::kRDMAWriteOnlyWithImmediate, pair.psn(), 8);
  EXPECT_TRUE(pair.answer(write).at(0).is_rnr_nak());
  EXPECT_EQ(pair.b.buffer, before);
  pair.receive(4, kFar, 0);
  EXPECT_TRUE(pair.answer(write).back().is_ack());
}

TEST(RCResponderTest, AReceiveTooSmallIsALocalLengthError) {
  Responses pair;
  pair.receive(1, kFar, 7);
  pair.receive(2, kFar, 64);
  const std::vector<u8> before = pair.b.buffer;
  const std::vector<Packet> answers = pair.answer(pair.request(Op::kSendOnly, pair.psn(), 8));
  EXPECT_TRUE(answers.at(0).is_nak(NAKCode::kInvalidRequest));
  EXPECT_EQ(outcomes(pair.b.receive_cqes),
            (Outcomes{{1, WQEStatus::kLocalLength}, {2, WQEStatus::kFlushed}}));
  EXPECT_EQ(pair.b.buffer, before);
}

TEST(RCResponderTest, ABadReceiveSGEIsALocalProtectionError) {
  Responses pair;
  ASSERT_EQ(pair.b.post_receive(1, {SGE{pair.b.address(), 64, LKey{0x1234}}}, pair.now),
            PostError::kOk);
  const std::vector<Packet> answers = pair.answer(pair.request(Op::kSendOnly, pair.psn(), 8));
  EXPECT_TRUE(answers.at(0).is_nak(NAKCode::kRemoteOperationalError));
  EXPECT_EQ(outcomes(pair.b.receive_cqes), (Outcomes{{1, WQEStatus::kLocalProtection}}));
}

// Copies to far memory end late.
TEST(RCResponderTest, AFailedCopyFailsTheReceiveThatIsStillFilled) {
  Responses pair;
  pair.receive(1, kFar, 4096);
  pair.receive(2, kFar, 64);
  pair.deliver(pair.b, pair.request(Op::kSendFirst, pair.psn(), 1024));
  pair.deliver(pair.b, pair.request(Op::kSendMiddle, pair.psn(1), 1024));
  pair.b.engine.on_receive_copy_failed({.psn = pair.psn(), .is_receive = true});
  pair.drain(pair.b);
  EXPECT_TRUE(pair.take_all(pair.b).at(0).is_nak(NAKCode::kRemoteOperationalError));
  EXPECT_EQ(outcomes(pair.b.receive_cqes),
            (Outcomes{{1, WQEStatus::kLocalProtection}, {2, WQEStatus::kFlushed}}));
}

// The device fails the completion of the earlier message, which it still holds.
TEST(RCResponderTest, AFailedCopyOfAnEarlierMessageFlushesTheReceiveThatIsStillFilled) {
  Responses pair;
  pair.receive(1, kFar, 64);
  pair.receive(2, kFar, 4096);
  pair.deliver(pair.b, pair.request(Op::kSendOnly, pair.psn(), 8));
  pair.deliver(pair.b, pair.request(Op::kSendFirst, pair.psn(1), 1024));
  pair.b.engine.on_receive_copy_failed({.psn = pair.psn(), .is_receive = true});
  pair.drain(pair.b);
  EXPECT_EQ(outcomes(pair.b.receive_cqes),
            (Outcomes{{1, WQEStatus::kSuccess}, {2, WQEStatus::kFlushed}}));
}

TEST(RCResponderTest, ReceiveCompletionsTellOpLengthImmediateAndSolicited) {
  Responses pair;
  pair.receive(1, kFar, 64);
  Packet send = pair.request(Op::kSendOnlyWithImmediate, pair.psn(), 10);
  send.headers.imm.value = 77;
  send.headers.bth.solicited_event = true;
  (void)pair.answer(send);
  CQE expected;
  expected.wr_id = 1;
  expected.op = CompletionOp::kReceive;
  expected.with_immediate = expected.solicited = true;
  expected.byte_length = 10;
  expected.immediate = 77;
  expected.qp = pair.b.qp.qpn;
  expected.source_qp = pair.a.qp.qpn;
  ASSERT_EQ(pair.b.receive_cqes.size(), 1u);
  EXPECT_EQ(pair.b.receive_cqes[0], expected);
}

TEST(RCResponderTest, ASendScattersOverAllSGEsAcrossPackets) {
  Responses pair;
  const std::vector<SGE> list = {pair.b.sge(kFar, 1000), pair.b.sge(kFar + 2000, 30),
                                 pair.b.sge(kFar + 3000, 1000)};
  ASSERT_EQ(pair.b.post_receive(1, list, pair.now), PostError::kOk);
  const Packet first = pair.request(Op::kSendFirst, pair.psn(), 1024);
  const Packet last = pair.request(Op::kSendLast, pair.psn(1), 500);
  (void)pair.answer(first);
  (void)pair.answer(last);
  std::vector<u8> all = first.payload;
  all.insert(all.end(), last.payload.begin(), last.payload.end());
  std::vector<u8> got = pair.b.bytes(kFar, 1000);
  for (const u8 byte : pair.b.bytes(kFar + 2000, 30)) got.push_back(byte);
  for (const u8 byte : pair.b.bytes(kFar + 3000, 494)) got.push_back(byte);
  EXPECT_EQ(got, all);
}

// --- credits. IBTA 9.7.7.2

TEST(RCResponderTest, AcknowledgesTellTheReceivesThatAreReady) {
  Responses pair;
  for (u64 i = 0; i < 5; ++i) pair.receive(i, kFar, 64);
  const Packet ack = pair.answer(pair.request(Op::kSendOnly, pair.psn(), 8)).at(0);
  EXPECT_EQ(ack.headers.aeth.value, code_from_credits(4));
}

TEST(RCResponderTest, AfterNoCreditsNewReceivesAreToldUnasked) {
  Responses pair;
  pair.receive(1, kFar, 64);
  const Packet ack = pair.answer(pair.request(Op::kSendOnly, pair.psn(), 8)).at(0);
  EXPECT_EQ(ack.headers.aeth.value, 0);
  pair.receive(2, kFar, 64);
  const std::vector<Packet> unasked = pair.take_all(pair.b);
  ASSERT_EQ(unasked.size(), 1u);
  EXPECT_EQ(unasked[0].psn(), pair.psn());
  EXPECT_EQ(unasked[0].headers.aeth.value, code_from_credits(1));
  pair.receive(3, kFar, 64);
  EXPECT_TRUE(pair.take_all(pair.b).empty());  // once is enough
}

TEST(RCResponderTest, AnSRQTellsNoCredits) {
  Responses pair({.shared_receive_queue = true});
  pair.receive(1, kFar, 64);
  const Packet ack = pair.answer(pair.request(Op::kSendOnly, pair.psn(), 8)).at(0);
  EXPECT_EQ(ack.headers.aeth.value, kNoCredits);
}

// --- invalid requests. IBTA 9.7.4.1, tables 49 and 58

TEST(RCResponderTest, WhatTheQPDoesNotAllowIsInvalid) {
  for (const Op op : {Op::kRDMAWriteOnly, Op::kRDMAReadRequest, Op::kFetchAdd, Op::kCmpSwap}) {
    Responses pair;
    pair.b.qp.remote_access = {};
    pair.expect_invalid(pair.request(op, pair.psn(), op == Op::kRDMAWriteOnly ? 8 : 0));
  }
}

TEST(RCResponderTest, AnUnalignedAtomicIsInvalid) {
  Responses pair;
  Packet add = pair.request(Op::kFetchAdd, pair.psn());
  add.headers.atomic.virtual_address += 4;
  pair.expect_invalid(add);
}

TEST(RCResponderTest, MiddleAndLastNeedABeginning) {
  for (const Op op :
       {Op::kSendMiddle, Op::kSendLast, Op::kSendLastWithImmediate, Op::kSendLastWithInvalidate,
        Op::kRDMAWriteMiddle, Op::kRDMAWriteLast, Op::kRDMAWriteLastWithImmediate}) {
    Responses pair;
    pair.receive(1, kFar, 8192);
    pair.expect_invalid(pair.request(op, pair.psn(), 1024));
  }
}

TEST(RCResponderTest, AMessageIsNotInterruptedByAnother) {
  for (const Op op :
       {Op::kSendFirst, Op::kSendOnly, Op::kRDMAWriteFirst, Op::kRDMAWriteMiddle,
        Op::kRDMAWriteLast, Op::kRDMAWriteOnly, Op::kRDMAReadRequest, Op::kFetchAdd}) {
    Responses pair;
    pair.receive(1, kFar, 8192);
    (void)pair.answer(pair.request(Op::kSendFirst, pair.psn(), 1024));
    const bool payload = traits_of({Service::kRC, op}).payload;
    pair.expect_invalid(pair.request(op, pair.psn(1), payload ? 1024 : 0));
  }
  for (const Op op : {Op::kSendMiddle, Op::kSendLast, Op::kSendOnly, Op::kRDMAWriteFirst}) {
    Responses pair;
    Packet first = pair.request(Op::kRDMAWriteFirst, pair.psn(), 1024);
    first.headers.reth.dma_length = 4096;
    (void)pair.answer(first);
    pair.expect_invalid(pair.request(op, pair.psn(1), 1024));
  }
}

TEST(RCResponderTest, FirstAndMiddleFillTheMTUAndNothingExceedsIt) {
  struct Case {
    Op op;
    std::size_t bytes;
  };
  for (const Case c : {Case{Op::kSendFirst, 1023},
                       {Op::kSendFirst, 0},
                       {Op::kSendFirst, 1025},
                       {Op::kSendOnly, 1025},
                       {Op::kRDMAWriteFirst, 512},
                       {Op::kRDMAWriteOnly, 1025}}) {
    Responses pair;
    pair.receive(1, kFar, 8192);
    Packet packet = pair.request(c.op, pair.psn(), c.bytes);
    if (c.op == Op::kRDMAWriteFirst) packet.headers.reth.dma_length = 4096;
    pair.expect_invalid(packet);
  }
  for (const Case c : {Case{Op::kSendMiddle, 1020}, {Op::kSendLast, 0}, {Op::kSendLast, 1025}}) {
    Responses pair;
    pair.receive(1, kFar, 8192);
    (void)pair.answer(pair.request(Op::kSendFirst, pair.psn(), 1024));
    pair.expect_invalid(pair.request(c.op, pair.psn(1), c.bytes));
  }
}

TEST(RCResponderTest, AWritesRETHLengthAndItsPacketsAgree) {
  for (const u32 length : {0u, 7u, 9u, 0xffffffffu}) {
    Responses pair;
    Packet only = pair.request(Op::kRDMAWriteOnly, pair.psn(), 8);
    only.headers.reth.dma_length = length;
    pair.expect_invalid(only);
  }
  for (const u32 length : {0u, 1024u}) {  // a First that would already be the end
    Responses pair;
    Packet first = pair.request(Op::kRDMAWriteFirst, pair.psn(), 1024);
    first.headers.reth.dma_length = length;
    pair.expect_invalid(first);
  }
  for (const std::size_t tail : {75u, 77u}) {
    Responses pair;
    Packet first = pair.request(Op::kRDMAWriteFirst, pair.psn(), 1024);
    first.headers.reth.dma_length = 1100;
    (void)pair.answer(first);
    pair.expect_invalid(pair.request(Op::kRDMAWriteLast, pair.psn(1), tail));
  }
  Responses pair;  // a Middle that would already be the end
  Packet first = pair.request(Op::kRDMAWriteFirst, pair.psn(), 1024);
  first.headers.reth.dma_length = 2048;
  (void)pair.answer(first);
  pair.expect_invalid(pair.request(Op::kRDMAWriteMiddle, pair.psn(1), 1024));
}

// --- remote access errors. IBTA 9.7.4.1.5

TEST(RCResponderTest, AWrongKeyIsARemoteAccessError) {
  for (const Op op : {Op::kRDMAWriteOnly, Op::kRDMAReadRequest, Op::kFetchAdd}) {
    Responses pair;
    Packet packet = pair.request(op, pair.psn(), op == Op::kRDMAWriteOnly ? 8 : 0);
    packet.headers.reth.r_key.value ^= 0x100;
    packet.headers.reth.dma_length = 8;
    packet.headers.atomic.r_key.value ^= 0x100;
    pair.expect_access_error(packet);
  }
}

TEST(RCResponderTest, AByteOutsideTheRegionIsARemoteAccessErrorOnTheFirstPacket) {
  {  // as tests/captures/rxe-rc-bad-bounds.pcap
    Responses pair;
    Packet first = pair.request(Op::kRDMAWriteFirst, pair.psn(), 1024);
    first.headers.reth.virtual_address = pair.b.address(kBufferBytes - 2047);
    first.headers.reth.dma_length = 2048;
    pair.expect_access_error(first);
  }
  {
    Responses pair;
    pair.expect_access_error(pair.read_request(pair.psn(), kBufferBytes - 8, 9));
  }
  {
    Responses pair;
    Packet add = pair.request(Op::kFetchAdd, pair.psn());
    add.headers.atomic.virtual_address = pair.b.address(kBufferBytes);
    pair.expect_access_error(add);
  }
}

TEST(RCResponderTest, ARightTheRegionDoesNotGrantIsARemoteAccessError) {
  for (const Op op : {Op::kRDMAWriteOnly, Op::kRDMAReadRequest, Op::kFetchAdd}) {
    Responses pair;
    const MRKeys keys = *pair.b.memory.register_mr(kPD, pair.b.buffer.data(), 4096,
                                                   pair.b.address(), Access::kLocalWrite);
    Packet packet = pair.request(op, pair.psn(), op == Op::kRDMAWriteOnly ? 8 : 0);
    packet.headers.reth.r_key = packet.headers.atomic.r_key = keys.r_key;
    packet.headers.reth.dma_length = 8;
    pair.expect_access_error(packet);
  }
}

TEST(RCResponderTest, AnotherProtectionDomainsKeyIsARemoteAccessError) {
  Responses pair;
  const MRKeys keys =
      *pair.b.memory.register_mr(PDId{2}, pair.b.buffer.data(), 4096, pair.b.address(), kAllRights);
  Packet write = pair.request(Op::kRDMAWriteOnly, pair.psn(), 8);
  write.headers.reth.r_key = keys.r_key;
  pair.expect_access_error(write);
}

TEST(RCResponderTest, LengthZeroNeedsNoKey) {  // IBTA 9.7.4.1.5
  Responses pair;
  Packet write = pair.request(Op::kRDMAWriteOnly, pair.psn(), 0);
  write.headers.reth = {.virtual_address = 1, .r_key = RKey{0xdead}, .dma_length = 0};
  EXPECT_TRUE(pair.answer(write).at(0).is_ack());
  Packet read = pair.request(Op::kRDMAReadRequest, pair.psn(1));
  read.headers.reth = write.headers.reth;
  const std::vector<Packet> answers = pair.answer(read);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].op(), Op::kRDMAReadResponseOnly);
  EXPECT_TRUE(answers[0].payload.empty());
}

TEST(RCResponderTest, AKeyThatDiesDuringAWriteEndsIt) {
  Responses pair;
  const MRKeys keys =
      *pair.b.memory.register_mr(kPD, pair.b.buffer.data(), 4096, pair.b.address(), kAllRights);
  Packet first = pair.request(Op::kRDMAWriteFirst, pair.psn(), 1024);
  first.headers.reth.r_key = keys.r_key;
  first.headers.reth.dma_length = 2000;
  (void)pair.answer(first);
  ASSERT_EQ(pair.b.memory.deregister_mr(keys.l_key), Status::kOk);
  pair.expect_access_error(pair.request(Op::kRDMAWriteLast, pair.psn(1), 976));
}

TEST(RCResponderTest, AKeyThatDiesDuringAReadEndsItAndAllBehindIt) {
  Responses pair;
  const MRKeys keys =
      *pair.b.memory.register_mr(kPD, pair.b.buffer.data(), 4096, pair.b.address(), kAllRights);
  Packet read = pair.read_request(pair.psn(), 0, 3000);
  read.headers.reth.r_key = keys.r_key;
  pair.deliver(pair.b, read);
  pair.deliver(pair.b, pair.read_request(pair.psn(3), kFar, 8));
  ASSERT_TRUE(pair.take(pair.b).has_value());
  ASSERT_EQ(pair.b.memory.deregister_mr(keys.l_key), Status::kOk);
  const std::vector<Packet> answers = pair.take_all(pair.b);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_TRUE(answers[0].is_nak(NAKCode::kRemoteAccessError));
  EXPECT_EQ(answers[0].psn(), pair.psn(1));
  EXPECT_EQ(pair.b.qp.state, QPState::kError);
}

// The requester had the response: it has sent the next request meanwhile, and ignores the NAK.
TEST(RCResponderTest, AKeyThatDiesBeforeADuplicateReadIsAnsweredLeavesTheQP) {
  Responses pair;
  const MRKeys keys =
      *pair.b.memory.register_mr(kPD, pair.b.buffer.data(), 4096, pair.b.address(), kAllRights);
  Packet read = pair.read_request(pair.psn(), 0, 3000);
  read.headers.reth.r_key = keys.r_key;
  ASSERT_EQ(pair.answer(read).size(), 3u);
  pair.deliver(pair.b, read);
  ASSERT_EQ(pair.b.memory.deregister_mr(keys.l_key), Status::kOk);
  pair.deliver(pair.b, pair.read_request(pair.psn(3), kFar, 8));
  const std::vector<Packet> answers = pair.take_all(pair.b);
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_TRUE(answers[0].is_nak(NAKCode::kRemoteAccessError));
  EXPECT_EQ(answers[0].psn(), pair.psn());
  EXPECT_EQ(answers[1].payload, pair.b.bytes(kFar, 8));
  EXPECT_EQ(pair.b.qp.state, QPState::kRTS);
}

// --- SEND with Invalidate. IBTA 9.4.1.1.3

struct Windowed : Responses {
  Windowed() {
    const RKey mw = *b.memory.allocate_mw(kPD, MWType::k2);
    key = *b.memory.bind_mw(kPD, b.qp.qpn, mw, RKey{mw.value ^ 1},
                            {b.keys.l_key, b.address(), 4096, Access::kRemoteWrite});
  }
  Packet invalidate(RKey k, u32 at) {
    Packet send = request(Op::kSendOnlyWithInvalidate, at, 8);
    send.headers.ieth.r_key = k;
    return send;
  }
  RKey key;
};

TEST(RCResponderTest, SendWithInvalidateTakesTheWindowAway) {
  // As tests/captures/rxe-rc-mw-inv.pcap.
  Windowed pair;
  pair.receive(1, kFar, 64);
  Packet write = pair.request(Op::kRDMAWriteOnly, pair.psn(), 8);
  write.headers.reth.r_key = pair.key;
  EXPECT_TRUE(pair.answer(write).at(0).is_ack());
  EXPECT_TRUE(pair.answer(pair.invalidate(pair.key, pair.psn(1))).at(0).is_ack());
  ASSERT_EQ(pair.b.receive_cqes.size(), 1u);
  EXPECT_TRUE(pair.b.receive_cqes[0].with_invalidate);
  EXPECT_EQ(pair.b.receive_cqes[0].immediate, pair.key.value);
  write.headers.bth.psn = PSN(pair.psn(2));
  pair.expect_access_error(write);
}

TEST(RCResponderTest, SendWithInvalidateOfAWrongKeyFailsTheReceive) {
  for (const bool region : {false, true}) {
    Windowed pair;
    pair.receive(1, kFar, 64);
    const RKey bad = region ? pair.b.keys.r_key : RKey{pair.key.value ^ 2};
    const std::vector<Packet> answers = pair.answer(pair.invalidate(bad, pair.psn()));
    EXPECT_TRUE(answers.at(0).is_nak(NAKCode::kRemoteAccessError));
    EXPECT_EQ(outcomes(pair.b.receive_cqes), (Outcomes{{1, WQEStatus::kLocalAccess}}));
    EXPECT_EQ(pair.b.qp.state, QPState::kError);
  }
}

}  // namespace
}  // namespace verbena::test
