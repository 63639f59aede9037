// A requester whose memory and whose peer's memory are far, and copies end late:
// transport/late_copy.h.
#include "transport/late_copy.h"

#include <gtest/gtest.h>

#include "transport/far_peer_for_test.h"
#include "transport/rc/rc_pair_for_test.h"

namespace verbena::test {
namespace {

constexpr u64 kGPUBytes = 1u << 16;

class RCLateCopyTest : public testing::Test {
 protected:
  explicit RCLateCopyTest(u64 bytes = kGPUBytes)
      : pair(options()), b(pair.b.memory, bytes, 6), a(pair.a.memory, bytes, 5) {
    peer.reach(pair.b.memory, pair.b.qp.qpn, b);
    a.late->is_stuck = true;
  }
  RCOptions options() {
    RCOptions options;
    options.peers = &peer;
    options.local_progress = peer.progress.get();
    options.send_copies = &lane;
    options.receive_copies = &target_lane;
    return options;
  }
  void post(SendOp op, u64 wr_id, u32 length, u64 remote = 0, u64 local = 0) {
    const SGE sge{local, length, a.keys.l_key};
    post(op, wr_id, std::span(&sge, 1), remote);
  }
  void post(SendOp op, u64 wr_id, std::span<const SGE> list, u64 remote) {
    SendWR wr = signaled(with_sges(make_wr(op, wr_id), list));
    wr.remote_address = remote;
    wr.r_key = b.keys.r_key;
    ASSERT_EQ(pair.a.engine.post_send(wr, pair.now), PostError::kOk);
  }
  // Polls, and looks for ended copies as a device does. Returns the packets that left.
  std::vector<Packet> poll() {
    std::vector<Packet> packets = pair.take_all(pair.a);
    pair.a.memory.copies().poll(pair.a.memory.far(), lane);
    pair.a.engine.on_timer(pair.now);
    pair.drain(pair.a);
    std::ranges::move(pair.take_all(pair.a), std::back_inserter(packets));
    return packets;
  }
  void end_copies() {
    a.late->is_stuck = false;
    EXPECT_TRUE(poll().empty());
    for (int i = 0; i < 1000 && lane.is_waiting(); ++i) EXPECT_TRUE(poll().empty());
  }
  // Delivers the packets of both sides until no copy runs and no packet is left.
  void settle() {
    a.late->is_stuck = false;
    for (int i = 0; i < 1000; ++i) {
      pair.deliver_all(pair.b, poll());
      b.late->finish();
      pair.b.memory.copies().poll(pair.b.memory.far(), target_lane);
      pair.settle();
    }
  }
  Outcomes done() const { return outcomes(pair.a.send_cqes); }

  FarPeer peer;
  CopyLane lane, target_lane;
  RCPair pair;
  FarBuffer b, a;  // copies of a end first
};

TEST_F(RCLateCopyTest, AWriteNeedsNoPacketsAndCompletesWhenItHasEnded) {
  post(SendOp::kRDMAWrite, 1, 3000, 100);
  EXPECT_TRUE(poll().empty());
  EXPECT_EQ(peer.hold.use_count(), 2) << "a job holds the peer's keys";
  EXPECT_TRUE(done().empty());
  end_copies();
  EXPECT_EQ(done(), (Outcomes{{1, WQEStatus::kSuccess}}));
  EXPECT_TRUE(std::equal(a.memory.begin(), a.memory.begin() + 3000, b.memory.begin() + 100));
  EXPECT_EQ(peer.hold.use_count(), 1);
  EXPECT_EQ(peer.writes, 1u);
  EXPECT_EQ(pair.a.engine.counters().local_write_requests, 1u);
}

TEST_F(RCLateCopyTest, AReadNeedsNoPackets) {
  post(SendOp::kRDMARead, 1, 3000, 100);
  EXPECT_TRUE(poll().empty());
  end_copies();
  EXPECT_EQ(done(), (Outcomes{{1, WQEStatus::kSuccess}}));
  EXPECT_TRUE(std::equal(a.memory.begin(), a.memory.begin() + 3000, b.memory.begin() + 100));
  EXPECT_EQ(peer.reads, 1u);
}

TEST_F(RCLateCopyTest, RequestsInARowAreOneCopy) {
  for (u64 id = 1; id <= 5; ++id) post(SendOp::kRDMAWrite, id, 100, id * 1000, id * 100);
  end_copies();
  EXPECT_EQ(done().size(), 5u);
  EXPECT_EQ(peer.asked, 1u);
  for (std::size_t id = 1; id <= 5; ++id)
    EXPECT_TRUE(std::equal(a.memory.begin() + static_cast<i64>(id * 100),
                           a.memory.begin() + static_cast<i64>(id * 100 + 100),
                           b.memory.begin() + static_cast<i64>(id * 1000)));
}

TEST_F(RCLateCopyTest, ListsAreCopiedPieceByPiece) {
  const SGE list[] = {{100, 10, a.keys.l_key}, {0, 0, a.keys.l_key}, {500, 2000, a.keys.l_key}};
  post(SendOp::kRDMAWrite, 1, list, 50);
  end_copies();
  EXPECT_TRUE(std::equal(a.memory.begin() + 100, a.memory.begin() + 110, b.memory.begin() + 50));
  EXPECT_TRUE(std::equal(a.memory.begin() + 500, a.memory.begin() + 2500, b.memory.begin() + 60));
}

TEST_F(RCLateCopyTest, NothingStartsBeforeItHasEnded) {
  pair.receive(9, 0, 100);
  post(SendOp::kRDMAWrite, 1, 3000);
  EXPECT_TRUE(poll().empty());
  pair.send(2, 10);
  EXPECT_TRUE(poll().empty());
  a.late->is_stuck = false;
  std::vector<Packet> packets;
  for (int i = 0; i < 1000 && packets.empty(); ++i) packets = poll();
  EXPECT_EQ(ops_of(packets), (std::vector<Op>{Op::kSendOnly}));
  EXPECT_EQ(done(), (Outcomes{{1, WQEStatus::kSuccess}}));
}

TEST_F(RCLateCopyTest, WhatThePeerRefusesGoesAsPackets) {
  peer.refuses = true;
  post(SendOp::kRDMAWrite, 1, 3000, 100);
  settle();
  EXPECT_EQ(done(), (Outcomes{{1, WQEStatus::kSuccess}}));
  EXPECT_TRUE(std::equal(a.memory.begin(), a.memory.begin() + 3000, b.memory.begin() + 100));
  EXPECT_EQ(pair.a.engine.counters().local_write_requests, 0u);
}

// Requests between GPU and host memory go as packets. They are no refusals: the next request
// between GPUs is a copy.
TEST_F(RCLateCopyTest, RequestsToHostMemoryDoNotPauseCopies) {
  for (u64 id = 1; id <= 8; ++id) {
    const SGE gpu{0, 3000, a.keys.l_key};
    const SendWR wr = signaled(with_sges(make_wr(SendOp::kRDMAWrite, id), {&gpu, 1}));
    ASSERT_EQ(pair.a.engine.post_send(pair.with_remote(wr, 0), pair.now), PostError::kOk);
    settle();
    ASSERT_EQ(done().size(), id);
  }
  EXPECT_EQ(peer.writes, 0u);
  post(SendOp::kRDMAWrite, 9, 3000, 100);
  end_copies();
  EXPECT_EQ(peer.writes, 1u);
}

TEST_F(RCLateCopyTest, RequestsFromHostMemoryDoNotPauseCopies) {
  for (u64 id = 1; id <= 8; ++id) {
    const SGE host = pair.a.sge(0, 3000);
    post(SendOp::kRDMAWrite, id, {&host, 1}, 100);
    settle();
    ASSERT_EQ(done().size(), id);
  }
  post(SendOp::kRDMAWrite, 9, 3000, 100);
  end_copies();
  EXPECT_EQ(peer.writes, 1u);
}

// Further requests are not tried: twice as many after each further refusal.
TEST_F(RCLateCopyTest, RefusalsPauseCopies) {
  peer.refuses = true;
  for (u64 id = 1; id <= 7; ++id) {
    post(SendOp::kRDMAWrite, id, 3000, 100);
    settle();
  }
  EXPECT_EQ(done().size(), 7u);
  EXPECT_EQ(peer.asked, 3u) << "for 1, 2 and 4";
}

TEST_F(RCLateCopyTest, ACopyThatFailsGoesAsPackets) {
  peer.region->is_gone = true;
  post(SendOp::kRDMAWrite, 1, 3000, 100);
  EXPECT_TRUE(poll().empty());
  EXPECT_EQ(peer.asked, 1u);
  settle();
  EXPECT_EQ(done(), (Outcomes{{1, WQEStatus::kSuccess}}));
  EXPECT_TRUE(std::equal(a.memory.begin(), a.memory.begin() + 3000, b.memory.begin() + 100));
  EXPECT_EQ(peer.writes, 0u);
}

TEST_F(RCLateCopyTest, AKeyThatDoesNotExistIsARemoteAccessError) {
  b.keys.r_key.value ^= 0x500;
  post(SendOp::kRDMAWrite, 1, 3000, 100);
  settle();
  EXPECT_EQ(done(), (Outcomes{{1, WQEStatus::kRemoteAccess}}));
}

TEST_F(RCLateCopyTest, OurOwnKeysAreChecked) {
  post(SendOp::kRDMAWrite, 1, 3000, 0, kGPUBytes - 100);
  settle();
  EXPECT_EQ(done(), (Outcomes{{1, WQEStatus::kLocalProtection}}));
}

TEST_F(RCLateCopyTest, PiecesOfHostMemoryGoAsPackets) {
  const SGE list[] = {{100, 10, a.keys.l_key}, pair.a.sge(0, 100)};
  post(SendOp::kRDMAWrite, 1, list, 50);
  settle();
  EXPECT_EQ(peer.asked, 0u);
  EXPECT_EQ(done(), (Outcomes{{1, WQEStatus::kSuccess}}));
  EXPECT_TRUE(std::equal(a.memory.begin() + 100, a.memory.begin() + 110, b.memory.begin() + 50));
}

TEST_F(RCLateCopyTest, SQDWaitsForIt) {
  post(SendOp::kRDMAWrite, 1, 3000);
  post(SendOp::kRDMARead, 2, 3000);
  EXPECT_TRUE(poll().empty());
  pair.a.set_state(QPState::kSQD, pair.now);
  pair.drain(pair.a);
  EXPECT_TRUE(pair.a.events.empty());
  end_copies();
  EXPECT_EQ(pair.a.events, (std::vector<EngineEvent>{EngineEvent::kSQDrained}));
  EXPECT_EQ(done(), (Outcomes{{1, WQEStatus::kSuccess}})) << "the READ has not started";
}

TEST_F(RCLateCopyTest, AQPThatEndsForgetsIt) {
  post(SendOp::kRDMAWrite, 1, 3000);
  EXPECT_TRUE(poll().empty());
  pair.a.set_state(QPState::kError, pair.now);
  end_copies();
  EXPECT_EQ(done(), (Outcomes{{1, WQEStatus::kFlushed}}));
  EXPECT_EQ(peer.writes, 0u);
}

TEST_F(RCLateCopyTest, AFailedCopyOfTheLaneEndsIt) {
  post(SendOp::kRDMAWrite, 1, 3000);
  EXPECT_TRUE(poll().empty());
  pair.a.engine.on_send_copy_failed();
  lane.clear();
  EXPECT_TRUE(poll().empty());
  EXPECT_EQ(done(), (Outcomes{{1, WQEStatus::kLocalProtection}}));
}

TEST_F(RCLateCopyTest, DeferredReadsOfHostMemoryComeFirst) {
  const SGE host = pair.a.sge(0, 1u << 16);
  SendWR wr = signaled(with_sges(make_wr(SendOp::kRDMARead, 1), {&host, 1}));
  wr = pair.with_remote(wr, 0);
  ASSERT_EQ(pair.a.engine.post_send(wr, pair.now), PostError::kOk);
  (void)pair.take_all(pair.a);
  EXPECT_TRUE(pair.a.engine.outputs().sooner_timer) << "it is deferred";
  post(SendOp::kRDMARead, 2, 3000);
  pair.deliver_all(pair.b, pair.take_all(pair.a));
  EXPECT_EQ(peer.host_reads, 1u);
  settle();
  EXPECT_EQ(done(), (Outcomes{{1, WQEStatus::kSuccess}, {2, WQEStatus::kSuccess}}));
}

constexpr u64 kLongBytes = PeerCopy::kLatePartBytes + 4096;

class RCLongLateCopyTest : public RCLateCopyTest {
 protected:
  RCLongLateCopyTest() : RCLateCopyTest(kLongBytes) {}
};

TEST_F(RCLongLateCopyTest, ALongWriteIsCopiedInParts) {
  a.memory.back() = 0xa5;
  post(SendOp::kRDMAWrite, 1, static_cast<u32>(kLongBytes));
  end_copies();
  end_copies();
  EXPECT_EQ(done(), (Outcomes{{1, WQEStatus::kSuccess}}));
  EXPECT_EQ(peer.asked, 2u);
  EXPECT_EQ(a.memory, b.memory);
}

}  // namespace
}  // namespace verbena::test
