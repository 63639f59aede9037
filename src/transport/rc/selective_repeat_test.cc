// Selective repeat, packet by packet: the packets that the responder keeps and reports, and those
// that the requester repeats, with a peer that does the same and with one that does not.
#include <gtest/gtest.h>

#include "congestion/congestion_control.h"
#include "transport/rc/rc_pair_for_test.h"

namespace verbena::test {
namespace {

constexpr u32 kPSN = 0x0a0000;  // a multiple of 64

RCOptions selective(u32 reordering = 0) {
  RCOptions o;
  o.limits.retransmission = Retransmission::kSelectiveRepeat;
  o.limits.reordering_packets = reordering;
  return o;
}

std::vector<Packet> without(std::vector<Packet> packets, const std::vector<u32>& lost) {
  std::erase_if(packets, [&](const Packet& p) {
    return std::ranges::find(lost, p.psn() - kPSN) != lost.end();
  });
  return packets;
}

std::vector<u32> offsets_of(const std::vector<Packet>& packets) {
  std::vector<u32> offsets;
  for (const Packet& p : packets) offsets.push_back(p.psn() - kPSN);
  return offsets;
}

bool is_sack(const Packet& p) { return p.headers.bth.opcode == kSackOpcode; }

TEST(SelectiveRepeat, OnlyWhatIsLostGoesAgain) {
  RCPair pair(selective());
  pair.write(1, 16 * 1024, 32768);
  pair.deliver_all(pair.b, without(pair.take_all(pair.a), {3, 4, 9}));
  pair.deliver_all(pair.a, pair.take_all(pair.b));
  EXPECT_EQ(offsets_of(pair.take_all(pair.a)), (std::vector<u32>{3, 4, 9}));
}

// Time stands still, so that no ACK has a round trip, and Swift would lower its window each time.
TEST(SelectiveRepeat, CongestionControlHearsOnceOfTheLossesOfARoundTrip) {
  const CongestionParameters parameters{
      .algorithm = SwiftParameters{.packet_bytes = 1024, .max_decrease = 0.5, .max_window = 100}};
  CongestionControl control(parameters);
  RCOptions options = selective();
  options.congestion = &control;
  RCPair pair(options);
  pair.write(1, 16 * 1024, 32768);
  pair.deliver_all(pair.b, without(pair.take_all(pair.a), {3, 4, 9}));
  EXPECT_EQ(control.window(pair.now), 100u * 1024);
  pair.deliver_all(pair.a, pair.take_all(pair.b));
  EXPECT_EQ(offsets_of(pair.take_all(pair.a)), (std::vector<u32>{3, 4, 9}));
  EXPECT_EQ(control.window(pair.now), 50u * 1024);
}

TEST(SelectiveRepeat, WhatCameEarlyIsExecutedOnceTheGapIsFilled) {
  RCPair pair(selective());
  pair.write(1, 8 * 1024, 32768);
  const std::vector<Packet> all = pair.take_all(pair.a);
  const std::vector<u8> before = pair.b.bytes(32768, 8 * 1024);
  pair.deliver_all(pair.b, without(all, {0}));
  EXPECT_EQ(pair.b.bytes(32768, 8 * 1024), before);  // keys and bounds come with the first
  pair.deliver(pair.b, all[0]);
  EXPECT_EQ(pair.b.bytes(32768, 8 * 1024), pair.a.bytes(0, 8 * 1024));
  pair.settle();
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kSuccess}}));
}

TEST(SelectiveRepeat, ASackNamesTheOldestMissingAndWhatIsHere) {
  RCPair pair(selective());
  pair.write(1, 8 * 1024, 32768);
  pair.deliver_all(pair.b, without(pair.take_all(pair.a), {2, 5}));
  const std::vector<Packet> answers = pair.take_all(pair.b);
  ASSERT_EQ(answers.size(), 1u);  // one for all that came at once
  ASSERT_TRUE(is_sack(answers[0]));
  EXPECT_EQ(answers[0].psn(), kPSN + 2);
  EXPECT_EQ(answers[0].headers.sack, (SackETH{.first = PSN(kPSN), .bits = 0b11011000}));
}

TEST(SelectiveRepeat, APacketThatIsOvertakenByFewIsNotLost) {
  RCPair pair(selective(3));
  pair.write(1, 16 * 1024, 32768);
  const std::vector<Packet> all = pair.take_all(pair.a);
  pair.deliver(pair.b, all[0]);
  for (u32 i = 2; i <= 4; ++i) pair.deliver(pair.b, all[i]);
  pair.deliver_all(pair.a, pair.take_all(pair.b));
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  pair.deliver(pair.b, all[5]);
  pair.deliver_all(pair.a, pair.take_all(pair.b));
  EXPECT_EQ(offsets_of(pair.take_all(pair.a)), (std::vector<u32>{1}));
}

TEST(SelectiveRepeat, OnceTheLastHasComeNothingElseCanOvertake) {
  RCPair pair(selective(32));
  pair.write(1, 4 * 1024, 32768);
  pair.deliver_all(pair.b, without(pair.take_all(pair.a), {1}));
  pair.deliver_all(pair.a, pair.take_all(pair.b));
  EXPECT_EQ(offsets_of(pair.take_all(pair.a)), (std::vector<u32>{1}));
}

TEST(SelectiveRepeat, ARepetitionThatIsLostIsSeenByWhatWasSentAfterIt) {
  RCPair pair(selective());
  pair.write(1, 4 * 1024, 32768);
  pair.deliver_all(pair.b, without(pair.take_all(pair.a), {1}));
  pair.deliver_all(pair.a, pair.take_all(pair.b));
  EXPECT_EQ(offsets_of(pair.take_all(pair.a)), (std::vector<u32>{1}));  // lost too
  pair.write(2, 2 * 1024, 65536);
  const std::vector<Packet> later = pair.take_all(pair.a);
  EXPECT_EQ(offsets_of(later), (std::vector<u32>{4, 5}));
  pair.deliver_all(pair.b, later);
  pair.deliver_all(pair.a, pair.take_all(pair.b));
  EXPECT_EQ(offsets_of(pair.take_all(pair.a)), (std::vector<u32>{1}));
}

TEST(SelectiveRepeat, SendsCompleteInOrderWhateverCameFirst) {
  RCPair pair(selective());
  for (u32 i = 0; i < 3; ++i) pair.receive(10 + i, 131072 + i * 1024, 1024);
  for (u32 i = 0; i < 3; ++i) pair.send(i, 100 + i);
  const std::vector<Packet> all = pair.take_all(pair.a);
  for (const u32 i : {2u, 1u}) pair.deliver(pair.b, all[i]);
  EXPECT_TRUE(pair.b.receive_cqes.empty());
  pair.deliver(pair.b, all[0]);
  ASSERT_EQ(
      outcomes(pair.b.receive_cqes),
      (Outcomes{{10, WQEStatus::kSuccess}, {11, WQEStatus::kSuccess}, {12, WQEStatus::kSuccess}}));
  for (u32 i = 0; i < 3; ++i) EXPECT_EQ(pair.b.receive_cqes[i].byte_length, 100 + i);
}

TEST(SelectiveRepeat, AnAtomicThatCameTwiceAndEarlyIsExecutedOnce) {
  RCPair pair(selective());
  pair.b.set_word(32768, 5);
  pair.write(1, 100, 65536);
  pair.fetch_add(2, 7, 32768, 4096);
  const std::vector<Packet> all = pair.take_all(pair.a);
  pair.deliver(pair.b, all[1]);
  pair.deliver(pair.b, all[1]);
  EXPECT_EQ(pair.b.word(32768), 5u);
  pair.deliver(pair.b, all[0]);
  pair.deliver(pair.b, all[1]);
  EXPECT_EQ(pair.b.word(32768), 12u);
  pair.settle();
  EXPECT_EQ(pair.a.word(4096), 5u);
  EXPECT_EQ(outcomes(pair.a.send_cqes),
            (Outcomes{{1, WQEStatus::kSuccess}, {2, WQEStatus::kSuccess}}));
}

TEST(SelectiveRepeat, OfAREADOnlyTheMissingResponsesAreAskedForAgain) {
  RCPair pair(selective());
  pair.read(1, 16 * 1024, 32768, 65536);
  pair.deliver_all(pair.b, pair.take_all(pair.a));
  pair.deliver_all(pair.a, without(pair.take_all(pair.b), {5, 6, 11}));
  const std::vector<Packet> again = pair.take_all(pair.a);
  EXPECT_EQ(offsets_of(again), (std::vector<u32>{5, 11}));
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(again[0].headers.reth.dma_length, 2048u);
  EXPECT_EQ(again[1].headers.reth.dma_length, 1024u);
  EXPECT_TRUE(pair.a.send_cqes.empty());
  pair.deliver_all(pair.b, again);
  pair.settle();
  EXPECT_EQ(pair.a.bytes(65536, 16 * 1024), pair.b.bytes(32768, 16 * 1024));
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kSuccess}}));
}

TEST(SelectiveRepeat, AReceiverThatIsNotReadyHoldsUpWhatCameBehind) {
  RCPair pair(selective());
  pair.send(1, 100);
  pair.write(2, 100, 65536);
  const std::vector<u8> before = pair.b.bytes(65536, 100);
  pair.deliver_all(pair.b, pair.take_all(pair.a));
  std::vector<Packet> answers = pair.take_all(pair.b);
  ASSERT_FALSE(answers.empty());
  EXPECT_TRUE(answers[0].is_rnr_nak());
  pair.deliver_all(pair.a, answers);
  EXPECT_TRUE(pair.take_all(pair.a).empty());  // until the peer's timer has passed
  EXPECT_EQ(pair.b.bytes(65536, 100), before);
  pair.receive(10, 131072, 1024);
  ASSERT_TRUE(pair.fire_timer(pair.a));
  const std::vector<Packet> again = pair.take_all(pair.a);
  EXPECT_EQ(offsets_of(again), (std::vector<u32>{0}));
  pair.deliver_all(pair.b, again);
  pair.settle();
  EXPECT_EQ(outcomes(pair.a.send_cqes),
            (Outcomes{{1, WQEStatus::kSuccess}, {2, WQEStatus::kSuccess}}));
}

TEST(SelectiveRepeat, AnEarlyRequestIsRefusedWhenItsTurnComes) {
  RCPair pair(selective());
  pair.write(1, 100, 32768);
  SendWR wr = pair.with_remote(signaled(make_wr(SendOp::kRDMAWrite, 2)), 0);
  wr.r_key = RKey{0xbad};
  pair.must_post(pair.a, wr, 0, 100);
  const std::vector<Packet> all = pair.take_all(pair.a);
  pair.deliver(pair.b, all[1]);
  EXPECT_EQ(pair.b.qp.state, QPState::kRTS);
  pair.deliver(pair.b, all[0]);
  EXPECT_EQ(pair.b.qp.state, QPState::kError);
  pair.deliver_all(pair.a, pair.take_all(pair.b));
  EXPECT_EQ(outcomes(pair.a.send_cqes),
            (Outcomes{{1, WQEStatus::kSuccess}, {2, WQEStatus::kRemoteAccess}}));
}

TEST(SelectiveRepeat, PSNsWrapAround) {
  RCOptions o = selective();
  o.psn = 0xfffffe;
  RCPair pair(o);
  pair.write(1, 8 * 1024, 32768);
  std::vector<Packet> all = pair.take_all(pair.a);
  all.erase(all.begin() + 1, all.begin() + 4);  // 0xffffff, 0, 1
  pair.deliver_all(pair.b, all);
  pair.deliver_all(pair.a, pair.take_all(pair.b));
  const std::vector<Packet> again = pair.take_all(pair.a);
  EXPECT_EQ(psns_of(again), (std::vector<u32>{0xffffff, 0, 1}));
  pair.deliver_all(pair.b, again);
  pair.settle();
  EXPECT_EQ(pair.b.bytes(32768, 8 * 1024), pair.a.bytes(0, 8 * 1024));
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kSuccess}}));
}

// A peer with wrong PSNs: its packet is never executed, neither now nor a round of PSNs later.
TEST(SelectiveRepeat, WhatClaimsThePSNsOfAREADIsForgotten) {
  RCOptions o = selective();
  RCPair pair(o);
  const std::vector<u8> before = pair.b.bytes(0, 100);
  Packet stray = pair.request(Op::kRDMAWriteOnly, kPSN + 2, 100);
  stray.headers.bth.takes_sack = true;
  pair.deliver(pair.b, stray);
  pair.deliver(pair.b, pair.read_request(kPSN, 32768, 4096));
  const std::vector<Packet> answers = pair.take_all(pair.b);
  EXPECT_EQ(answers.size(), 5u);  // the SACK, and the READ's
  pair.deliver(pair.b, pair.request(Op::kRDMAWriteOnly, kPSN + 4, 0));
  EXPECT_EQ(pair.b.bytes(0, 100), before);
}

// --- peers without it

TEST(SelectiveRepeat, ToARequesterThatDoesNotAskAGapIsAnsweredAsTheStandardHasIt) {
  RCPair pair(selective());
  Packet packet = pair.request(Op::kRDMAWriteOnly, kPSN + 3, 100);
  ASSERT_FALSE(packet.headers.bth.takes_sack);
  pair.deliver(pair.b, packet);
  const std::vector<Packet> answers = pair.take_all(pair.b);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_TRUE(answers[0].is_nak(NAKCode::kPSNSequenceError));
}

TEST(SelectiveRepeat, OnANAKOfTheStandardEverythingGoesAgain) {
  RCPair pair(selective());
  pair.write(1, 6 * 1024, 32768);
  (void)pair.take_all(pair.a);
  pair.deliver(pair.a, pair.nak(NAKCode::kPSNSequenceError, kPSN + 2));
  EXPECT_EQ(offsets_of(pair.take_all(pair.a)), (std::vector<u32>{2, 3, 4, 5}));
}

TEST(SelectiveRepeat, WithoutItTheBitIsNotSentAndASackNotBelieved) {
  RCPair pair;
  pair.write(1, 4 * 1024, 32768);
  for (const Packet& p : pair.take_all(pair.a)) EXPECT_FALSE(p.headers.bth.takes_sack);
  Packet sack = pair.ack(kPSN + 3);
  sack.headers.bth.opcode = kSackOpcode;
  sack.headers.sack = {.first = PSN(kPSN), .bits = ~u64{0}};
  pair.deliver(pair.a, sack);
  EXPECT_TRUE(pair.a.send_cqes.empty());
  EXPECT_TRUE(pair.take_all(pair.a).empty());
}

TEST(SelectiveRepeat, ASackOfWhatWasNeverSentIsNotBelieved) {
  RCPair pair(selective());
  pair.write(1, 2 * 1024, 32768);
  (void)pair.take_all(pair.a);
  Packet sack = pair.ack(kPSN);
  sack.headers.bth.opcode = kSackOpcode;
  sack.headers.sack = {.first = PSN(kPSN + 64), .bits = ~u64{0}};
  pair.deliver(pair.a, sack);
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  EXPECT_TRUE(pair.a.send_cqes.empty());
}

TEST(SelectiveRepeat, WhatIsLostWithoutEndUsesUpTheRetries) {
  RCPair pair(selective());
  pair.write(1, 1024, 32768);
  u32 rounds = 0;
  while (pair.a.send_cqes.empty() && ++rounds < 100) {
    (void)pair.take_all(pair.a);
    if (!pair.fire_timer(pair.a)) break;
  }
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kRetryExceeded}}));
}

}  // namespace
}  // namespace verbena::test
