// The packets of an RC requester. IBTA Vol 1, 9.7.2, 9.7.3, 9.7.7.2, 10.3.1.
#include "transport/rc/requester.h"

#include <algorithm>
#include <array>

#include "transport/rc/rc_pair_for_test.h"
#include "wire/ib/credits.h"

namespace verbena::test {
namespace {

// --- segmentation. IBTA 9.7.2, table 38

class RCSegmentation : public ::testing::TestWithParam<MTU> {};

std::vector<u32> boundary_lengths(u32 mtu) {
  return {0, 1, 3, 4, mtu - 1, mtu, mtu + 1, 2 * mtu - 1, 2 * mtu, 2 * mtu + 1, 5 * mtu + 7};
}

u32 packets_of(u32 length, u32 mtu) { return std::max(1u, (length + mtu - 1) / mtu); }

TEST_P(RCSegmentation, SendsAreFirstMiddleLastOrOnlyInPSNOrder) {
  const u32 mtu = bytes(GetParam());
  for (const u32 length : boundary_lengths(mtu)) {
    RCPair pair({.mtu = GetParam()});
    pair.receive(1, kFar, length);
    pair.send(7, length, 64);
    const std::vector<Packet> packets = pair.take_all(pair.a);
    const u32 count = packets_of(length, mtu);
    ASSERT_EQ(packets.size(), count) << length;
    for (u32 i = 0; i < count; ++i) {
      const Op expected = count == 1       ? Op::kSendOnly
                          : i == 0         ? Op::kSendFirst
                          : i == count - 1 ? Op::kSendLast
                                           : Op::kSendMiddle;
      EXPECT_EQ(packets[i].op(), expected);
      EXPECT_EQ(packets[i].psn(), pair.o.psn + i);
      EXPECT_EQ(packets[i].payload.size(), i + 1 < count ? mtu : length - i * mtu);
      EXPECT_EQ(packets[i].headers.bth.ack_req, i == count - 1);
    }
    pair.deliver_all(pair.b, packets);
    pair.settle();
    ASSERT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{7, WQEStatus::kSuccess}}));
    ASSERT_EQ(outcomes(pair.b.receive_cqes), (Outcomes{{1, WQEStatus::kSuccess}}));
    EXPECT_EQ(pair.b.receive_cqes[0].byte_length, length);
    EXPECT_EQ(pair.b.bytes(kFar, length), pair.a.bytes(64, length));
  }
}

TEST_P(RCSegmentation, WritesCarryTheirRETHOnceAndArriveWhole) {
  const u32 mtu = bytes(GetParam());
  for (const u32 length : boundary_lengths(mtu)) {
    RCPair pair({.mtu = GetParam()});
    const std::vector<u8> before = pair.b.bytes(kFar + length, 64);
    pair.write(7, length, kFar, 64);
    const std::vector<Packet> packets = pair.take_all(pair.a);
    const u32 count = packets_of(length, mtu);
    ASSERT_EQ(packets.size(), count);
    EXPECT_EQ(packets.front().op(), count == 1 ? Op::kRDMAWriteOnly : Op::kRDMAWriteFirst);
    EXPECT_EQ(packets.front().headers.reth,
              (RETH{pair.b.address(kFar), pair.b.keys.r_key, length}));
    EXPECT_EQ(packets.back().op(), count == 1 ? Op::kRDMAWriteOnly : Op::kRDMAWriteLast);
    pair.deliver_all(pair.b, packets);
    pair.settle();
    ASSERT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{7, WQEStatus::kSuccess}}));
    EXPECT_EQ(pair.b.bytes(kFar, length), pair.a.bytes(64, length));
    EXPECT_EQ(pair.b.bytes(kFar + length, 64), before);
    EXPECT_TRUE(pair.b.receive_cqes.empty());
  }
}

TEST_P(RCSegmentation, ReadsTakeAPSNForEachResponsePacket) {
  const u32 mtu = bytes(GetParam());
  for (const u32 length : boundary_lengths(mtu)) {
    RCPair pair({.mtu = GetParam()});
    const u32 count = packets_of(length, mtu);
    pair.read(7, length, kFar, 64);
    pair.send(8, 0);
    pair.receive(1, 0, 0);
    const std::vector<Packet> requests = pair.take_all(pair.a);
    ASSERT_EQ(psns_of(requests), (std::vector<u32>{pair.o.psn, pair.o.psn + count}));
    pair.deliver_all(pair.b, requests);
    const std::vector<Packet> responses = pair.take_all(pair.b);
    ASSERT_EQ(responses.size(), count + 1);
    for (u32 i = 0; i < count; ++i) {
      const Op expected = count == 1       ? Op::kRDMAReadResponseOnly
                          : i == 0         ? Op::kRDMAReadResponseFirst
                          : i == count - 1 ? Op::kRDMAReadResponseLast
                                           : Op::kRDMAReadResponseMiddle;
      EXPECT_EQ(responses[i].op(), expected);
      EXPECT_EQ(responses[i].psn(), pair.o.psn + i);
    }
    pair.deliver_all(pair.a, responses);
    ASSERT_EQ(outcomes(pair.a.send_cqes),
              (Outcomes{{7, WQEStatus::kSuccess}, {8, WQEStatus::kSuccess}}));
    EXPECT_EQ(pair.a.send_cqes[0].byte_length, length);
    EXPECT_EQ(pair.a.bytes(64, length), pair.b.bytes(kFar, length));
  }
}

INSTANTIATE_TEST_SUITE_P(EveryMTU, RCSegmentation,
                         ::testing::Values(MTU::k256, MTU::k512, MTU::k1024, MTU::k2048,
                                           MTU::k4096),
                         [](const auto& p) { return std::to_string(bytes(p.param)); });

TEST(RCRequesterTest, ImmediateAndInvalidateRideOnTheLastPacket) {
  RCPair pair;
  const auto post = [&](SendOp op, u32 length) {
    SendWR wr = pair.with_remote(make_wr(op), kFar);
    wr.immediate = 0xabcd;
    wr.invalidate = RKey{0x77};
    pair.must_post(pair.a, wr, 0, length);
    return ops_of(pair.take_all(pair.a));
  };
  using Ops = std::vector<Op>;
  EXPECT_EQ(post(SendOp::kSendWithImmediate, 1), Ops{Op::kSendOnlyWithImmediate});
  EXPECT_EQ(post(SendOp::kSendWithImmediate, 1025),
            (Ops{Op::kSendFirst, Op::kSendLastWithImmediate}));
  EXPECT_EQ(post(SendOp::kSendWithInvalidate, 1), Ops{Op::kSendOnlyWithInvalidate});
  EXPECT_EQ(post(SendOp::kSendWithInvalidate, 1025),
            (Ops{Op::kSendFirst, Op::kSendLastWithInvalidate}));
  EXPECT_EQ(post(SendOp::kRDMAWriteWithImmediate, 0), Ops{Op::kRDMAWriteOnlyWithImmediate});
  EXPECT_EQ(post(SendOp::kRDMAWriteWithImmediate, 1025),
            (Ops{Op::kRDMAWriteFirst, Op::kRDMAWriteLastWithImmediate}));
}

TEST(RCRequesterTest, SolicitedEventIsOnTheLastPacketOnly) {
  RCPair pair;
  pair.must_post(pair.a, solicited(make_wr(SendOp::kSend)), 0, 3000);
  const std::vector<Packet> packets = pair.take_all(pair.a);
  ASSERT_EQ(packets.size(), 3u);
  EXPECT_FALSE(packets[0].headers.bth.solicited_event);
  EXPECT_FALSE(packets[1].headers.bth.solicited_event);
  EXPECT_TRUE(packets[2].headers.bth.solicited_event);
}

TEST(RCRequesterTest, PSNsWrapAt2To24) {
  RCPair pair({.psn = 0xfffffe});
  pair.receive(1, kFar, 4000);
  pair.send(1, 4000);
  const std::vector<Packet> packets = pair.take_all(pair.a);
  EXPECT_EQ(psns_of(packets), (std::vector<u32>{0xfffffe, 0xffffff, 0, 1}));
  pair.deliver_all(pair.b, packets);
  pair.settle();
  pair.read(2, 3000, kFar);
  pair.fetch_add(3, 1, kFar);
  pair.settle();
  EXPECT_EQ(
      outcomes(pair.a.send_cqes),
      (Outcomes{{1, WQEStatus::kSuccess}, {2, WQEStatus::kSuccess}, {3, WQEStatus::kSuccess}}));
}

TEST(RCRequesterTest, SGEsAreGatheredInOrder) {
  RCPair pair;
  pair.receive(1, kFar, 4096);
  const std::array<SGE, 4> list = {pair.a.sge(100, 1), pair.a.sge(0, 0), pair.a.sge(5000, 1500),
                                   pair.a.sge(900, 33)};
  ASSERT_EQ(pair.a.engine.post_send(with_sges(make_wr(SendOp::kSend), list), pair.now),
            PostError::kOk);
  pair.settle();
  std::vector<u8> expected = pair.a.bytes(100, 1);
  for (const u8 byte : pair.a.bytes(5000, 1500)) expected.push_back(byte);
  for (const u8 byte : pair.a.bytes(900, 33)) expected.push_back(byte);
  EXPECT_EQ(pair.b.bytes(kFar, 1534), expected);
}

TEST(RCRequesterTest, InlineBytesAreThoseOfThePost) {
  RCPair pair;
  pair.receive(1, kFar, 256);
  std::vector<u8> bytes(200, 0x11);  // in no region: keys are not looked at
  const SGE list = {reinterpret_cast<u64>(bytes.data()), 200, LKey{0xdead}};
  ASSERT_EQ(pair.a.engine.post_send(
                with_sges(inline_data(signaled(make_wr(SendOp::kSend))), {&list, 1}), pair.now),
            PostError::kOk);
  std::ranges::fill(bytes, u8{0x22});
  pair.settle();
  EXPECT_EQ(pair.b.bytes(kFar, 200), std::vector<u8>(200, 0x11));
}

// --- BTH.A: no message is left without an acknowledgment that somebody asked for

TEST(RCRequesterTest, TheLastOfUnsignaledMessagesAsksForItsAcknowledge) {
  RCPair pair;
  for (u64 i = 0; i < 5; ++i)
    pair.must_post(pair.a, pair.with_remote(make_wr(SendOp::kRDMAWrite, i), kFar), 0, 8);
  const std::vector<Packet> packets = pair.take_all(pair.a);
  ASSERT_EQ(packets.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(packets[i].headers.bth.ack_req, i == 4) << i;
  pair.deliver_all(pair.b, packets);
  EXPECT_EQ(pair.take_all(pair.b).size(), 1u);  // one ACK for all
}

// --- how soon packets must leave

TEST(RCRequesterTest, APacketWaitsForMoreWhileAnAnswerIsToCome) {
  RCPair pair;
  for (u64 i = 0; i < 3; ++i) pair.write(i, 8, kFar);
  const std::vector<Packet> packets = pair.take_all(pair.a);
  ASSERT_EQ(packets.size(), 3u);
  EXPECT_EQ(packets[0].urgency, Urgency::kFirst);
  EXPECT_EQ(packets[1].urgency, Urgency::kWithMore);
  EXPECT_EQ(packets[2].urgency, Urgency::kWithMore) << "each of them completes";
}

TEST(RCRequesterTest, TheOneOfManyThatCompletesGoesAtOnce) {
  RCPair pair;
  for (u64 i = 0; i < 20; ++i)
    pair.must_post(pair.a, pair.with_remote(make_wr(SendOp::kRDMAWrite, i), kFar), 0, 8);
  pair.write(20, 8, kFar);
  const std::vector<Packet> packets = pair.take_all(pair.a);
  ASSERT_EQ(packets.size(), 21u);
  EXPECT_EQ(packets[19].urgency, Urgency::kWithMore);
  EXPECT_EQ(packets[20].urgency, Urgency::kNow);
}

TEST(RCRequesterTest, ALongRunAsksEveryNowAndThen) {
  RCPair pair;
  pair.write(1, 200 * 1024, 0);
  u32 asked = 0, since = 0, longest = 0;
  for (const Packet& packet : pair.take_all(pair.a)) {
    ++since;
    longest = std::max(longest, since);
    if (packet.headers.bth.ack_req) ++asked, since = 0;
  }
  EXPECT_GE(asked, 5u);
  EXPECT_LE(longest, 64u);
  EXPECT_EQ(since, 0u);
}

TEST(RCRequesterTest, EachPacketMayAsk) {
  RCPair pair({.limits = {.path = software_path(), .ack_interval = 1}});
  pair.write(1, 20 * 1024, 0);
  for (const Packet& packet : pair.take_all(pair.a)) EXPECT_TRUE(packet.headers.bth.ack_req);
}

TEST(RCRequesterTest, PacketsMayHaveASizeThatNoPathMTUHas) {
  RCPair pair({.mtu = MTU::k4096, .limits = {.packet_bytes = 1000}});
  pair.write(1, 2500, 0);
  const std::vector<Packet> packets = pair.take_all(pair.a);
  ASSERT_EQ(packets.size(), 3u);
  EXPECT_EQ(packets[0].payload.size(), 1000u);
  EXPECT_EQ(packets[2].payload.size(), 500u);
  pair.deliver_all(pair.b, packets);
  const std::vector<Packet> answers = pair.take_all(pair.b);
  ASSERT_FALSE(answers.empty());
  EXPECT_TRUE(answers.back().is_ack());
}

TEST(RCRequesterTest, AFullWindowAsksForTheAcknowledgeThatOpensIt) {
  RCPair pair({.limits = {.path = software_path(8)}});
  pair.write(1, 20 * 1024, 0);
  const std::vector<Packet> packets = pair.take_all(pair.a);
  ASSERT_EQ(packets.size(), 8u);
  EXPECT_TRUE(packets.back().headers.bth.ack_req);
  pair.deliver_all(pair.b, packets);
  pair.settle();
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kSuccess}}));
}

TEST(RCRequesterTest, AnUnsignaledMessageBeforeALocalOperationAsks) {
  RCPair pair;
  const RKey mw = *pair.a.memory.allocate_mw(kPD, MWType::k2);
  pair.must_post(pair.a, pair.with_remote(make_wr(SendOp::kRDMAWrite, 1), kFar), 0, 8);
  SendWR bind = signaled(make_wr(SendOp::kBindMW, 2));
  bind.mw = mw;
  bind.mw_new = RKey{mw.value ^ 1};
  bind.mw_bind = {pair.a.keys.l_key, pair.a.address(), 64, Access::kRemoteRead};
  ASSERT_EQ(pair.a.engine.post_send(bind, pair.now), PostError::kOk);
  pair.settle();
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{2, WQEStatus::kSuccess}}));
  EXPECT_EQ(pair.a.engine.next_timer(), Time::never());
}

TEST(RCRequesterTest, AnUnsignaledMessageBeforeAFencedOneAsks) {
  RCPair pair;
  pair.read(1, 10, kFar);
  pair.must_post(pair.a, pair.with_remote(make_wr(SendOp::kRDMAWrite, 2), kFar), 0, 8);
  pair.must_post(pair.a, pair.with_remote(fence(signaled(make_wr(SendOp::kRDMAWrite, 3))), kFar), 0,
                 8);
  pair.settle();
  EXPECT_EQ(outcomes(pair.a.send_cqes),
            (Outcomes{{1, WQEStatus::kSuccess}, {3, WQEStatus::kSuccess}}));
}

// --- READs and atomics: the peer's resources, fence. IBTA 9.7.3.1, 10.8.3.3

TEST(RCRequesterTest, NeverMoreReadsAndAtomicsInFlightThanMaxRdAtomic) {
  RCPair pair({.max_rd_atomic = 3});
  for (u64 i = 0; i < 4; ++i) {
    pair.read(2 * i, 100, kFar);
    pair.fetch_add(2 * i + 1, 1, kFar + 8 * i);
  }
  const std::vector<Packet> requests = pair.take_all(pair.a);
  EXPECT_EQ(requests.size(), 3u);
  pair.deliver_all(pair.b, requests);
  pair.settle();
  EXPECT_EQ(pair.a.send_cqes.size(), 8u);
}

TEST(RCRequesterTest, AReadLargerThanTheWindowIsAskedForInPiecesThatFit) {
  RCPair pair({.limits = {.path = software_path(16)}});
  pair.read(1, 100 * 1024, kFar);
  const std::vector<Packet> requests = pair.take_all(pair.a);
  ASSERT_EQ(requests.size(), 4u);  // of 4 packets each
  for (u32 i = 0; i < 4; ++i) {
    EXPECT_EQ(requests[i].psn(), pair.o.psn + 4 * i);
    EXPECT_EQ(requests[i].headers.reth.virtual_address, pair.b.address(kFar + 4096 * i));
    EXPECT_EQ(requests[i].headers.reth.dma_length, 4096u);
  }
  pair.deliver_all(pair.b, requests);
  pair.settle();
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kSuccess}}));
  EXPECT_EQ(pair.a.bytes(0, 100 * 1024), pair.b.bytes(kFar, 100 * 1024));
}

TEST(RCRequesterTest, WithoutResourcesAtThePeerAReadFailsLocally) {
  RCPair pair({.max_rd_atomic = 0});
  pair.read(1, 8, kFar);
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kLocalQPOperation}}));
  EXPECT_EQ(pair.a.qp.state, QPState::kError);
}

TEST(RCRequesterTest, AFencedMessageWaitsForReadsAndAtomicsOnly) {
  RCPair pair;
  pair.read(1, 3000, kFar);
  pair.write(2, 8, 0);
  SendWR fenced = pair.with_remote(signaled(make_wr(SendOp::kRDMAWrite, 3)), 0);
  fenced.fence = true;
  pair.must_post(pair.a, fenced, 0, 8);
  const std::vector<Packet> first = pair.take_all(pair.a);
  EXPECT_EQ(ops_of(first), (std::vector<Op>{Op::kRDMAReadRequest, Op::kRDMAWriteOnly}));
  pair.deliver(pair.b, first[0]);
  const std::vector<Packet> responses = pair.take_all(pair.b);
  ASSERT_EQ(responses.size(), 3u);
  pair.deliver(pair.a, responses[0]);
  pair.deliver(pair.a, responses[1]);
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  pair.deliver(pair.a, responses[2]);
  EXPECT_EQ(ops_of(pair.take_all(pair.a)), (std::vector<Op>{Op::kRDMAWriteOnly}));
}

// --- signaling. IBTA 10.8.1.1

TEST(RCRequesterTest, TheNextCQEFreesTheSlotsOfUnsignaledRequests) {
  RCPair pair({.depth = 4});
  const SendWR wr = pair.with_remote(make_wr(SendOp::kRDMAWrite, 3), kFar);
  for (u64 round = 0; round < 10; ++round) {
    for (u64 i = 0; i < 3; ++i) pair.must_post(pair.a, wr, 0, 8);
    pair.settle();
    EXPECT_EQ(pair.a.send_cqes.size(), round) << "none of the unsignaled";
    pair.must_post(pair.a, signaled(wr), 0, 8);
    EXPECT_EQ(pair.post(pair.a, wr, 0, 8), PostError::kQueueFull);
    pair.settle();
    ASSERT_EQ(pair.a.send_cqes.size(), round + 1);
    EXPECT_EQ(pair.a.send_cqes.back().entries, 4u);
  }
}

TEST(RCRequesterTest, SignalAllSignalsAll) {
  RCPair pair({.signal_all = true});
  pair.must_post(pair.a, pair.with_remote(make_wr(SendOp::kRDMAWrite, 5), kFar), 0, 8);
  pair.settle();
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{5, WQEStatus::kSuccess}}));
}

TEST(RCRequesterTest, AFailureIsReportedUnsignaledToo) {
  RCPair pair;
  SendWR wr = pair.with_remote(make_wr(SendOp::kRDMAWrite, 9), kFar);
  wr.r_key = RKey{0};
  pair.must_post(pair.a, wr, 0, 8);
  pair.settle();
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{9, WQEStatus::kRemoteAccess}}));
}

// --- posting rules. IBTA 10.3.1

TEST(RCRequesterTest, SendsAreRefusedBeforeRTSAndFlushedInError) {
  RCPair pair;
  for (const QPState state : {QPState::kReset, QPState::kInit, QPState::kRTR}) {
    pair.a.set_state(state, pair.now);
    EXPECT_EQ(pair.post(pair.a, make_wr(SendOp::kSend), 0, 8), PostError::kBadState);
  }
  pair.a.set_state(QPState::kError, pair.now);
  EXPECT_EQ(pair.post(pair.a, make_wr(SendOp::kSend, 3), 0, 8), PostError::kOk);
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{3, WQEStatus::kFlushed}}));
}

TEST(RCRequesterTest, AnAtomicNeedsEightBytesOfRoomAndNoInline) {
  RCPair pair;
  EXPECT_EQ(pair.post(pair.a, pair.with_remote(make_wr(SendOp::kFetchAdd), kFar), 0, 4),
            PostError::kUnaligned);
  EXPECT_EQ(pair.post(pair.a, pair.with_remote(make_wr(SendOp::kCompareSwap), kFar), 0, 16),
            PostError::kUnaligned);
  EXPECT_EQ(
      pair.post(pair.a, pair.with_remote(inline_data(make_wr(SendOp::kRDMARead)), kFar), 0, 8),
      PostError::kBadOpcode);
  EXPECT_TRUE(pair.take_all(pair.a).empty());
}

// --- errors of our own side. IBTA 9.9.2.1

TEST(RCRequesterTest, ABadLocalKeyFailsInItsTurn) {
  RCPair pair;
  pair.write(1, 8, kFar);
  pair.must_post(pair.a, pair.with_remote(make_wr(SendOp::kRDMAWrite, 2), kFar), 0, 8);
  const SGE bad = {pair.a.address(), 8, LKey{pair.a.keys.l_key.value ^ 1}};
  SendWR wr = pair.with_remote(make_wr(SendOp::kRDMAWrite, 3), kFar + 64);
  wr.sg_list = {&bad, 1};
  ASSERT_EQ(pair.a.engine.post_send(wr, pair.now), PostError::kOk);
  pair.write(4, 8, kFar + 64);
  const std::vector<u8> before = pair.b.bytes(kFar + 64, 8);
  pair.settle();
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kSuccess},
                                                  {3, WQEStatus::kLocalProtection},
                                                  {4, WQEStatus::kFlushed}}));
  EXPECT_EQ(pair.b.bytes(kFar + 64, 8), before);
  EXPECT_EQ(pair.a.events, (std::vector<EngineEvent>{EngineEvent::kFatal}));
}

TEST(RCRequesterTest, ABadSecondSGEStopsTheMessageInItsMiddle) {
  RCPair pair;
  const std::array<SGE, 2> list = {pair.a.sge(0, 2048),
                                   SGE{pair.a.address(kBufferBytes - 8), 16, pair.a.keys.l_key}};
  SendWR wr = pair.with_remote(make_wr(SendOp::kRDMAWrite, 3), kFar);
  wr.sg_list = list;
  ASSERT_EQ(pair.a.engine.post_send(wr, pair.now), PostError::kOk);
  pair.settle();
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{3, WQEStatus::kLocalProtection}}));
}

TEST(RCRequesterTest, AReadIntoMemoryThatIsNotOursFailsWhenTheDataComes) {
  RCPair pair;
  const std::vector<u8> before = pair.a.buffer;
  const std::array<SGE, 1> list = {SGE{pair.a.address(kBufferBytes - 8), 16, pair.a.keys.l_key}};
  SendWR wr = pair.with_remote(make_wr(SendOp::kRDMARead, 3), kFar);
  wr.sg_list = list;
  ASSERT_EQ(pair.a.engine.post_send(wr, pair.now), PostError::kOk);
  pair.settle();
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{3, WQEStatus::kLocalProtection}}));
  EXPECT_EQ(pair.a.buffer, before);
}

TEST(RCRequesterTest, ABindThatFailsEndsTheQPAfterTheWorkBefore) {
  RCPair pair;
  pair.must_post(pair.a, pair.with_remote(make_wr(SendOp::kRDMAWrite, 1), kFar), 0, 8);
  SendWR wr = make_wr(SendOp::kLocalInvalidate, 2);
  wr.invalidate = RKey{pair.a.keys.r_key.value};  // a region is not invalidated so
  ASSERT_EQ(pair.a.engine.post_send(wr, pair.now), PostError::kOk);
  pair.settle();
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{2, WQEStatus::kMWBind}}));
}

// --- end-to-end credits. IBTA 9.7.7.2

TEST(RCRequesterTest, CreditsLimitSendsAndNotWrites) {
  RCPair pair;
  pair.write(1, 0, 0);
  (void)pair.take_all(pair.a);
  pair.deliver(pair.a, pair.ack(pair.o.psn, code_from_credits(2), 1));  // LSN 3
  for (u64 i = 2; i < 6; ++i) pair.send(i, 8);
  EXPECT_EQ(pair.take_all(pair.a).size(), 2u);  // SSN 2 and 3
  pair.deliver(pair.a, pair.ack(pair.o.psn + 2, code_from_credits(0), 3));
  pair.write(6, 8, 0);                          // behind the SENDs, so it waits with them
  EXPECT_EQ(pair.take_all(pair.a).size(), 1u);  // no credits: one at a time
  pair.deliver(pair.a, pair.ack(pair.o.psn + 3, code_from_credits(8), 4));
  EXPECT_EQ(ops_of(pair.take_all(pair.a)), (std::vector<Op>{Op::kSendOnly, Op::kRDMAWriteOnly}));
}

TEST(RCRequesterTest, WritesGoOutWithoutCredits) {
  RCPair pair;
  pair.write(1, 0, 0);
  (void)pair.take_all(pair.a);
  pair.deliver(pair.a, pair.ack(pair.o.psn, code_from_credits(0), 1));
  for (u64 i = 2; i < 6; ++i) pair.write(i, 8, 0);
  EXPECT_EQ(pair.take_all(pair.a).size(), 4u);
}

TEST(RCRequesterTest, AnUnsolicitedAcknowledgeBringsCredits) {
  RCPair pair;
  pair.write(1, 0, 0);
  (void)pair.take_all(pair.a);
  pair.deliver(pair.a, pair.ack(pair.o.psn, code_from_credits(0), 1));
  for (u64 i = 2; i < 6; ++i) pair.send(i, 8);
  EXPECT_EQ(pair.take_all(pair.a).size(), 1u);
  pair.deliver(pair.a, pair.ack(pair.o.psn, code_from_credits(16), 1));  // of an old PSN
  EXPECT_EQ(pair.take_all(pair.a).size(), 3u);
}

TEST(RCRequesterTest, ReadResponsesBringCreditsToo) {
  RCPair pair;
  for (u32 i = 0; i < 4; ++i) pair.receive(i, 0, 64);
  pair.send(1, 8);
  pair.settle();  // three credits are known
  for (u64 i = 0; i < 20; ++i) {
    pair.read(100 + i, 8, kFar);
    pair.settle();
  }
  pair.a.send_cqes.clear();
  for (u64 i = 2; i < 5; ++i) pair.send(i, 8);
  EXPECT_EQ(pair.take_all(pair.a).size(), 3u);
}

TEST(RCRequesterTest, AnSRQGivesNoCreditsAndLimitsNothing) {
  RCPair pair({.shared_receive_queue = true});
  pair.receive(1, 0, 64);
  pair.send(1, 8);
  pair.settle();
  for (u64 i = 2; i < 12; ++i) pair.send(i, 8);
  EXPECT_EQ(pair.take_all(pair.a).size(), 10u);
}

}  // namespace
}  // namespace verbena::test
