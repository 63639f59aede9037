// FLUSH and ATOMIC WRITE: both are answered by a READ response without payload. IBTA Vol 1, Annex
// A19.
#include <gtest/gtest.h>

#include "transport/rc/rc_pair_for_test.h"

namespace verbena::test {
namespace {

constexpr u64 kWord = 0x0123456789abcdef;

// b may be flushed: all of its buffer, by a key of its own.
struct Confirmed : RCPair {
  explicit Confirmed(const RCOptions& options = {}) : RCPair(options) {
    b.qp.remote_access = kAllRights | Access::kFlushGlobal | Access::kFlushPersistent;
    flush_key = *b.memory.register_mr(kPD, b.buffer.data(), b.buffer.size(), b.address(),
                                      kAllRights | Access::kFlushGlobal);
  }
  SendWR flush_wr(u64 wr_id, u32 length, FETH feth = {.global = true}) const {
    SendWR wr = with_remote(signaled(make_wr(SendOp::kFlush, wr_id)), kFar);
    wr.r_key = flush_key.r_key;
    wr.flush = feth;
    wr.flush_length = length;
    return wr;
  }
  void flush(u64 wr_id, u32 length, FETH feth = {.global = true}) {
    ASSERT_EQ(a.engine.post_send(flush_wr(wr_id, length, feth), now), PostError::kOk);
  }
  void atomic_write(u64 wr_id, u64 remote, u64 value) {
    a.set_word(0, value);
    must_post(a, with_remote(signaled(make_wr(SendOp::kAtomicWrite, wr_id)), remote), 0, 8);
  }
  Packet flush_request(u32 n, FETH feth = {.global = true}, u32 length = 64) const {
    Packet packet = request(Op::kFlush, o.psn + n);
    packet.headers.feth = feth;
    packet.headers.reth.r_key = flush_key.r_key;
    packet.headers.reth.dma_length = length;
    return packet;
  }
  std::vector<Packet> answer(const Packet& packet) {
    deliver(b, packet);
    return take_all(b);
  }
  void expect_refused(const Packet& packet, NAKCode code) {
    const std::vector<u8> before = b.buffer;
    const std::vector<Packet> answers = answer(packet);
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_TRUE(answers[0].is_nak(code)) << int{answers[0].headers.aeth.value};
    EXPECT_EQ(b.qp.state, QPState::kError);
    EXPECT_EQ(b.buffer, before);
  }
  MRKeys flush_key;
};

bool is_confirmation(const Packet& packet) {
  return packet.op() == Op::kRDMAReadResponseOnly && packet.payload.empty() &&
         packet.headers.aeth.kind == AETHKind::kACK;
}

// --- requester

TEST(RCConfirmedTest, AFlushNamesItsRangeAndEndsWithAnEmptyResponse) {
  Confirmed pair;
  pair.flush(1, 4096);
  const std::vector<Packet> requests = pair.take_all(pair.a);
  ASSERT_EQ(ops_of(requests), std::vector<Op>{Op::kFlush});
  EXPECT_EQ(requests[0].headers.feth, FETH{.global = true});
  EXPECT_EQ(requests[0].headers.reth.dma_length, 4096u);
  EXPECT_EQ(requests[0].headers.reth.virtual_address, pair.b.address(kFar));
  EXPECT_TRUE(requests[0].payload.empty());
  const std::vector<Packet> responses = pair.answer(requests[0]);
  ASSERT_EQ(responses.size(), 1u);
  EXPECT_TRUE(is_confirmation(responses[0]));
  EXPECT_EQ(responses[0].psn(), pair.o.psn);
  EXPECT_EQ(responses[0].headers.aeth.msn, MSN(1));
  EXPECT_TRUE(pair.a.send_cqes.empty());
  pair.deliver_all(pair.a, responses);
  ASSERT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kSuccess}}));
  EXPECT_EQ(pair.a.send_cqes[0].op, CompletionOp::kFlush);
}

TEST(RCConfirmedTest, AnAtomicWriteStoresItsWord) {
  for (const bool is_inline : {false, true}) {
    Confirmed pair;
    pair.a.set_word(0, kWord);
    SendWR wr = pair.with_remote(signaled(make_wr(SendOp::kAtomicWrite, 1)), kFar);
    wr.inline_data = is_inline;
    pair.must_post(pair.a, wr, 0, 8);
    const std::vector<Packet> requests = pair.take_all(pair.a);
    ASSERT_EQ(ops_of(requests), std::vector<Op>{Op::kAtomicWrite});
    EXPECT_EQ(requests[0].payload, pair.a.bytes(0, 8));
    EXPECT_EQ(requests[0].headers.reth.dma_length, 8u);
    pair.deliver_all(pair.b, requests);
    pair.settle();
    EXPECT_EQ(pair.b.word(kFar), kWord);
    ASSERT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kSuccess}}));
    EXPECT_EQ(pair.a.send_cqes[0].op, CompletionOp::kAtomicWrite);
  }
}

TEST(RCConfirmedTest, TheyTakeUpThePeersResourcesAndHoldAFenceBack) {
  Confirmed pair({.max_rd_atomic = 2});
  pair.flush(1, 8);
  pair.atomic_write(2, kFar, kWord);
  pair.flush(3, 8);
  const std::vector<Packet> first = pair.take_all(pair.a);
  EXPECT_EQ(ops_of(first), (std::vector<Op>{Op::kFlush, Op::kAtomicWrite}));
  pair.must_post(pair.a, fence(pair.with_remote(signaled(make_wr(SendOp::kRDMAWrite, 4)), 0)), 0,
                 8);
  pair.deliver_all(pair.b, first);
  pair.deliver_all(pair.a, pair.take_all(pair.b));
  EXPECT_EQ(ops_of(pair.take_all(pair.a)), std::vector<Op>{Op::kFlush});
}

TEST(RCConfirmedTest, AnotherAnswerEndsTheQP) {
  for (const bool is_flush : {true, false})
    for (const bool has_payload : {true, false}) {
      Confirmed pair;
      is_flush ? pair.flush(1, 8) : pair.atomic_write(1, kFar, kWord);
      (void)pair.take_all(pair.a);
      pair.deliver(pair.a, has_payload ? pair.response(Op::kRDMAReadResponseOnly, pair.o.psn, 8)
                                       : pair.response(Op::kAtomicAcknowledge, pair.o.psn));
      EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kBadResponse}}));
    }
}

TEST(RCConfirmedTest, APlainAcknowledgeDoesNotConfirm) {
  Confirmed pair;
  pair.flush(1, 8);
  (void)pair.take_all(pair.a);
  pair.deliver(pair.a, pair.ack(pair.o.psn));
  EXPECT_TRUE(pair.a.send_cqes.empty());
  EXPECT_EQ(ops_of(pair.take_all(pair.a)), std::vector<Op>{Op::kFlush}) << "an implied NAK";
}

TEST(RCConfirmedTest, BadRequestsAreRefusedWhenPosted) {
  Confirmed pair;
  for (const u32 length : {0u, 4u, 16u})
    EXPECT_EQ(pair.post(pair.a, pair.with_remote(make_wr(SendOp::kAtomicWrite), kFar), 0, length),
              PostError::kUnaligned);
  EXPECT_EQ(pair.post(pair.a, pair.flush_wr(1, 8), 0, 8), PostError::kTooManySGEs);
}

TEST(RCConfirmedTest, WithoutResourcesAtThePeerTheyFailLocally) {
  Confirmed pair({.max_rd_atomic = 0});
  pair.flush(1, 8);
  (void)pair.take_all(pair.a);
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kLocalQPOperation}}));
}

// --- responder

TEST(RCConfirmedTest, AllOfARegionIsFlushedWhateverItsRange) {
  Confirmed pair;
  Packet packet =
      pair.flush_request(0, {.global = true, .selectivity = FlushSelectivity::kRegion}, 0xffffffff);
  packet.headers.reth.virtual_address = 3;
  const std::vector<Packet> answers = pair.answer(packet);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_TRUE(is_confirmation(answers[0]));
  const std::vector<Packet> empty = pair.answer(pair.flush_request(1, {.global = true}, 0));
  ASSERT_EQ(empty.size(), 1u);
  EXPECT_TRUE(is_confirmation(empty[0]));
}

TEST(RCConfirmedTest, AFlushNeedsItsRightsAndItsRange) {
  constexpr FETH kGlobal{.global = true};
  {
    Confirmed pair;
    pair.expect_refused(pair.flush_request(0, {.persistent = true}), NAKCode::kRemoteAccessError);
  }
  {
    Confirmed pair;
    pair.expect_refused(pair.flush_request(0, {.global = true, .persistent = true}),
                        NAKCode::kRemoteAccessError);
  }
  {
    Confirmed pair;
    pair.expect_refused(pair.flush_request(0, kGlobal, kBufferBytes + 1),
                        NAKCode::kRemoteAccessError);
  }
  for (const FlushSelectivity level : {FlushSelectivity::kRange, FlushSelectivity::kRegion}) {
    Confirmed pair;
    Packet packet = pair.flush_request(0, {.global = true, .selectivity = level}, 0);
    packet.headers.reth.r_key = pair.b.keys.r_key;  // a region that grants no FLUSH
    pair.expect_refused(packet, NAKCode::kRemoteAccessError);
  }
  {
    Confirmed pair;
    Packet packet = pair.flush_request(0, kGlobal, 0);
    packet.headers.reth.r_key.value ^= 0xff00;
    pair.expect_refused(packet, NAKCode::kRemoteAccessError);
  }
}

TEST(RCConfirmedTest, WhatTheQPDoesNotAllowIsInvalid) {
  {
    Confirmed pair;
    pair.b.qp.remote_access = kAllRights;
    pair.expect_refused(pair.flush_request(0), NAKCode::kInvalidRequest);
  }
  {
    Confirmed pair;
    pair.b.qp.remote_access = AccessFlags(Access::kRemoteRead);
    pair.expect_refused(pair.request(Op::kAtomicWrite, pair.o.psn, 8), NAKCode::kInvalidRequest);
  }
  for (const bool is_flush : {true, false}) {
    Confirmed pair({.max_dest_rd_atomic = 0});
    const Packet packet =
        is_flush ? pair.flush_request(0) : pair.request(Op::kAtomicWrite, pair.o.psn, 8);
    pair.expect_refused(packet, NAKCode::kInvalidRequest);
  }
}

TEST(RCConfirmedTest, AFlushOfNoKindIsInvalid) {
  for (const FETH& feth :
       {FETH{}, FETH{.global = true, .selectivity = static_cast<FlushSelectivity>(2)},
        FETH{.global = true, .selectivity = static_cast<FlushSelectivity>(3)}}) {
    Confirmed pair;
    pair.expect_refused(pair.flush_request(0, feth), NAKCode::kInvalidRequest);
  }
}

TEST(RCConfirmedTest, AnAtomicWriteIsEightAlignedBytes) {
  for (const u32 length : {0u, 4u, 7u, 9u, 1024u}) {
    Confirmed pair;
    pair.expect_refused(pair.request(Op::kAtomicWrite, pair.o.psn, length),
                        NAKCode::kInvalidRequest);
  }
  {
    Confirmed pair;
    Packet packet = pair.request(Op::kAtomicWrite, pair.o.psn, 8);
    packet.headers.reth.dma_length = 16;
    pair.expect_refused(packet, NAKCode::kInvalidRequest);
  }
  {
    Confirmed pair;
    Packet packet = pair.request(Op::kAtomicWrite, pair.o.psn, 8);
    packet.headers.reth.virtual_address += 4;
    pair.expect_refused(packet, NAKCode::kInvalidRequest);
  }
  {
    Confirmed pair;
    Packet packet = pair.request(Op::kAtomicWrite, pair.o.psn, 8);
    packet.headers.reth.virtual_address = pair.b.address(kBufferBytes);
    pair.expect_refused(packet, NAKCode::kRemoteAccessError);
  }
}

TEST(RCConfirmedTest, DuplicatesAreConfirmedAndNotExecutedAgain) {
  Confirmed pair;
  const Packet write = pair.request(Op::kAtomicWrite, pair.o.psn, 8);
  EXPECT_TRUE(is_confirmation(pair.answer(write).at(0)));
  EXPECT_TRUE(is_confirmation(pair.answer(pair.flush_request(1)).at(0)));
  pair.b.set_word(0, kWord);
  for (int i = 0; i < 3; ++i) {
    const std::vector<Packet> answers = pair.answer(write);
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_TRUE(is_confirmation(answers[0]));
    EXPECT_EQ(answers[0].psn(), pair.o.psn);
    EXPECT_EQ(pair.answer(pair.flush_request(1)).at(0).psn(), pair.o.psn + 1);
  }
  EXPECT_EQ(pair.b.word(0), kWord);
  EXPECT_EQ(pair.b.engine.counters().duplicate_request, 6u);
}

TEST(RCConfirmedTest, TheyKeepTheirPlaceInTheOrder) {
  Confirmed pair;
  pair.write(1, 3000, kFar, 4096);
  pair.flush(2, 3000);
  pair.atomic_write(3, kFar + 4096, kWord);
  pair.read(4, 3000, kFar, 8192);
  pair.settle();
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kSuccess},
                                                  {2, WQEStatus::kSuccess},
                                                  {3, WQEStatus::kSuccess},
                                                  {4, WQEStatus::kSuccess}}));
  EXPECT_EQ(pair.b.word(kFar + 4096), kWord);
  EXPECT_EQ(pair.a.bytes(8192, 3000), pair.a.bytes(4096, 3000));
}

}  // namespace
}  // namespace verbena::test
