// A requester whose memory and whose peer's memory are far, and copies end late:
// transport/late_copy.h.
#include "transport/late_copy.h"

#include <gtest/gtest.h>

#include "transport/far_peer_for_test.h"
#include "transport/iwarp/iwarp_pair_for_test.h"

namespace verbena::iwarp {
namespace {

using test::End;
using test::EndOptions;
using test::kNow;
using test::Pair;
using verbena::test::FarBuffer;
using verbena::test::FarPeer;

constexpr u64 kBytes = 1u << 16;
constexpr u32 kLength = 3000;

class IWARPLateCopyTest : public testing::Test {
 protected:
  IWARPLateCopyTest()
      : pair({}, options(), target_options()),
        b(pair.b.memory, kBytes, 6),
        a(pair.a.memory, kBytes, 5) {
    peer.reach(pair.b.memory, pair.b.qp.qpn, b);
    pair.begin({.atomics_and_immediate = true, .ird = 4, .ord = 4});
    pair.b.post_receive(1000, {});
    post(SendOp::kSend, 1000, 0);  // the first message of the stream is never a copy
    pair.run();
    pair.a.sent.clear();
    pair.b.received.clear();
    a.late->is_stuck = true;
  }
  EndOptions options() {
    EndOptions options;
    options.peers = &peer;
    options.send_copies = &lane;
    return options;
  }
  EndOptions target_options() {
    EndOptions options;
    options.progress = peer.progress.get();
    options.receive_copies = &target_lane;
    return options;
  }
  void post(SendOp op, u64 wr_id, u32 length) { post(op, wr_id, length, b.keys.r_key, 100); }
  void post(SendOp op, u64 wr_id, u32 length, RKey r_key, u64 remote) {
    SendWR wr;
    wr.op = op;
    wr.wr_id = wr_id;
    wr.r_key = r_key;
    wr.remote_address = remote;
    EXPECT_EQ(pair.a.post(wr, {{0, length, a.keys.l_key}}), PostError::kOk);
  }
  // Runs the stream, and looks for ended copies as a device does.
  void run() {
    for (int i = 0; i < 200; ++i) {
      pair.run();
      for (auto [end, own] : {std::pair(&pair.a, &lane), std::pair(&pair.b, &target_lane)}) {
        end->memory.copies().poll(end->memory.far(), *own);
        end->engine->on_timer(kNow);
        end->drain();
      }
    }
  }
  bool is_copied() const {
    return std::equal(a.memory.begin(), a.memory.begin() + kLength, b.memory.begin() + 100);
  }

  FarPeer peer;
  CopyLane lane, target_lane;
  Pair pair;
  FarBuffer b, a;  // copies of a end first
};

TEST_F(IWARPLateCopyTest, RequestsCompleteWhenTheyHaveEnded) {
  const std::size_t sent = pair.a_to_b.size();
  post(SendOp::kRDMAWrite, 1, kLength);
  run();
  EXPECT_TRUE(pair.a.sent.empty());
  a.late->is_stuck = false;
  run();
  EXPECT_TRUE(is_copied());
  post(SendOp::kRDMARead, 2, kLength);
  run();
  ASSERT_EQ(pair.a.sent.size(), 2u);
  EXPECT_EQ(pair.a.sent[1].status, WQEStatus::kSuccess);
  EXPECT_EQ(peer.writes, 1u);
  EXPECT_EQ(peer.reads, 1u);
  EXPECT_EQ(pair.a_to_b.size(), sent) << "no byte of the stream";
}

TEST_F(IWARPLateCopyTest, NothingStartsBeforeOneHasEnded) {
  pair.b.post_receive(9, {pair.b.sge(0, 100)});
  post(SendOp::kRDMAWrite, 1, kLength);
  post(SendOp::kSend, 2, 100);
  run();
  EXPECT_TRUE(pair.b.received.empty());
  a.late->is_stuck = false;
  run();
  EXPECT_EQ(pair.b.received.size(), 1u);
  EXPECT_EQ(pair.a.sent.size(), 2u);
}

TEST_F(IWARPLateCopyTest, ACopyThatFailsBecomesAMessage) {
  peer.region->is_gone = true;
  post(SendOp::kRDMAWrite, 1, kLength);
  run();
  EXPECT_EQ(peer.asked, 1u);
  a.late->is_stuck = false;
  run();
  ASSERT_EQ(pair.a.sent.size(), 1u);
  EXPECT_EQ(pair.a.sent[0].status, WQEStatus::kSuccess);
  EXPECT_TRUE(is_copied());
  EXPECT_EQ(peer.writes, 0u);
}

TEST_F(IWARPLateCopyTest, WhatThePeerRefusesBecomesAMessage) {
  peer.refuses = true;
  a.late->is_stuck = false;
  post(SendOp::kRDMAWrite, 1, kLength);
  run();
  ASSERT_EQ(pair.a.sent.size(), 1u);
  EXPECT_TRUE(is_copied());
  EXPECT_EQ(peer.writes, 0u);
}

// Requests from GPU to host memory become messages, and later ones between GPUs are copied.
TEST_F(IWARPLateCopyTest, RequestsToHostMemoryDoNotPauseCopies) {
  a.late->is_stuck = false;
  for (u64 id = 1; id <= 8; ++id) {
    post(SendOp::kRDMAWrite, id, kLength, pair.b.keys.r_key, test::kIova);
    run();
    ASSERT_EQ(pair.a.sent.size(), id);
  }
  EXPECT_EQ(peer.writes, 0u);
  post(SendOp::kRDMAWrite, 9, kLength);
  run();
  EXPECT_TRUE(is_copied());
  EXPECT_EQ(peer.writes, 1u);
}

TEST_F(IWARPLateCopyTest, SQDWaitsForIt) {
  post(SendOp::kRDMAWrite, 1, kLength);
  run();
  pair.a.to(QPState::kSQD);
  pair.a.drain();
  EXPECT_TRUE(pair.a.events.empty());
  a.late->is_stuck = false;
  run();
  EXPECT_EQ(pair.a.events, (std::vector<EngineEvent>{EngineEvent::kSQDrained}));
  EXPECT_EQ(pair.a.sent.size(), 1u);
}

TEST_F(IWARPLateCopyTest, AQPThatEndsForgetsIt) {
  post(SendOp::kRDMAWrite, 1, kLength);
  run();
  pair.a.to(QPState::kError);
  a.late->is_stuck = false;
  run();
  ASSERT_EQ(pair.a.sent.size(), 1u);
  EXPECT_EQ(pair.a.sent[0].status, WQEStatus::kFlushed);
  EXPECT_EQ(peer.writes, 0u);
}

}  // namespace
}  // namespace verbena::iwarp
