// A requester whose peer is on the same host: transport/peer_memory.h.
#include "transport/near_memory_for_test.h"
#include "transport/rc/rc_pair_for_test.h"

namespace verbena::test {
namespace {

constexpr u32 kLong = 1u << 16;

// The memory of a pair's other side, as its keys allow.
class NearPeer final : public PeerMemory, public PeerMemoryFinder {
 public:
  std::shared_ptr<PeerMemory> find(const QPAttributes&) override {
    return target == nullptr ? nullptr : std::shared_ptr<PeerMemory>(std::shared_ptr<void>(), this);
  }
  bool has_executed(const QPAttributes& qp, PSN before) const override {
    return progress->is_at(qp.dest_qp, before);
  }
  bool write(const QPAttributes&, std::span<const MemoryPiece> from,
             std::span<const PeerRange> to) override {
    return copy(to, from, Access::kRemoteWrite);
  }
  bool read(const QPAttributes&, std::span<const PeerRange> from,
            std::span<const MemoryPiece> to) override {
    return copy(from, to, Access::kRemoteRead);
  }

  const std::unique_ptr<LocalProgress> progress = std::make_unique<LocalProgress>();  // of both
  Side* target = nullptr;
  bool refuses = false;
  u32 calls = 0, done = 0;

 private:
  bool copy(std::span<const PeerRange> ranges, std::span<const MemoryPiece> pieces, Access need) {
    ++calls;
    if (refuses) return false;
    if (!copy_near(*target, kPD, ranges, pieces, need)) return false;
    ++done;
    return true;
  }
};

// For a program that polls soon.
void earn_trust(PollHabit& habit, Time now) {
  for (u32 run = 0; run <= PollHabit::kRuns; ++run) {
    habit.on_poll();
    for (int i = 0; i < 2; ++i) (void)habit.may_wait(now);
  }
}

class LocalCopiesTest : public testing::Test {
 protected:
  explicit LocalCopiesTest(RCOptions options = {}) : pair(near(options)) {
    peer.target = &pair.b;
    pair.a.set_state(QPState::kReset, pair.now);
    pair.b.set_state(QPState::kReset, pair.now);
    pair.connect();
  }
  RCOptions near(RCOptions options) {
    options.peers = &peer;
    options.local_progress = peer.progress.get();
    options.habit = &program;
    return options;
  }
  const EngineCounters& counters() const { return pair.a.engine.counters(); }
  void check_it_comes_before_an_error();
  void check_any_mix();

  PollHabit program;
  NearPeer peer;
  RCPair pair;
};

TEST_F(LocalCopiesTest, AWriteNeedsNoPackets) {
  pair.write(1, 3000, kFar);
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  EXPECT_EQ(pair.b.bytes(kFar, 3000), pair.a.bytes(0, 3000));
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kSuccess}}));
  EXPECT_EQ(counters().local_write_requests, 1u);
  EXPECT_EQ(pair.a.engine.next_timer(), Time::never());
}

TEST_F(LocalCopiesTest, AReadNeedsNoPackets) {
  pair.read(1, 3000, kFar);
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  EXPECT_EQ(pair.a.bytes(0, 3000), pair.b.bytes(kFar, 3000));
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kSuccess}}));
  EXPECT_EQ(counters().local_read_requests, 1u);
}

TEST_F(LocalCopiesTest, ItTakesNoPSNs) {
  pair.write(1, 3000, kFar);
  pair.receive(9, 0, 100);
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  pair.send(2, 10);
  const std::vector<Packet> packets = pair.take_all(pair.a);
  ASSERT_EQ(psns_of(packets), (std::vector<u32>{pair.o.psn}));
  pair.deliver_all(pair.b, packets);
  pair.settle();
  EXPECT_EQ(outcomes(pair.a.send_cqes),
            (Outcomes{{1, WQEStatus::kSuccess}, {2, WQEStatus::kSuccess}}));
}

TEST_F(LocalCopiesTest, OperationsThatAreNotCopiesArePackets) {
  pair.fetch_add(1, 5, kFar);
  EXPECT_EQ(ops_of(pair.take_all(pair.a)), (std::vector<Op>{Op::kFetchAdd}));
  EXPECT_EQ(peer.calls, 0u);
}

TEST_F(LocalCopiesTest, AnEmptyWriteIsAPacket) {  // its key is not checked. IBTA 9.7.4.1.5
  pair.write(1, 0, kFar);
  EXPECT_EQ(ops_of(pair.take_all(pair.a)), (std::vector<Op>{Op::kRDMAWriteOnly}));
}

TEST_F(LocalCopiesTest, WhatIsInFlightIsNotOvertaken) {
  pair.receive(9, 0, 100);
  pair.send(1, 10);
  pair.write(2, 100, kFar);
  EXPECT_EQ(ops_of(pair.take_all(pair.a)), (std::vector<Op>{Op::kSendOnly, Op::kRDMAWriteOnly}));
  EXPECT_EQ(peer.calls, 0u);
}

TEST_F(LocalCopiesTest, APeerThatExpectsAnotherPSNGetsPackets) {
  for (const bool reads : {false, true}) {
    for (Side* const side : {&pair.a, &pair.b}) side->set_state(QPState::kReset, pair.now);
    pair.connect();
    pair.receive(9, 0, 100);
    pair.send(1, 10);
    pair.settle();
    pair.b.set_state(QPState::kReset, pair.now);
    pair.b.set_state(QPState::kInit, pair.now);
    pair.b.set_state(QPState::kRTR, pair.now);  // with the PSN that it began with
    reads ? pair.read(2, 100, kFar) : pair.write(2, 100, kFar);
    EXPECT_EQ(ops_of(pair.take_all(pair.a)),
              (std::vector<Op>{reads ? Op::kRDMAReadRequest : Op::kRDMAWriteOnly}));
    EXPECT_EQ(peer.calls, 0u);
  }
}

TEST_F(LocalCopiesTest, WhatIsExecutedIsOvertakenBeforeItsAcknowledgementComes) {
  pair.receive(9, 0, 100);
  pair.send(1, 10);
  pair.deliver_all(pair.b, pair.take_all(pair.a));
  pair.write(2, 100, kFar);
  pair.read(3, 100, kFar, 1000);
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  EXPECT_EQ(peer.done, 2u);
  EXPECT_EQ(pair.a.bytes(1000, 100), pair.a.bytes(0, 100));
  EXPECT_TRUE(pair.a.send_cqes.empty());  // the SEND's is the first
  pair.settle();
  EXPECT_EQ(
      outcomes(pair.a.send_cqes),
      (Outcomes{{1, WQEStatus::kSuccess}, {2, WQEStatus::kSuccess}, {3, WQEStatus::kSuccess}}));
  EXPECT_EQ(pair.a.engine.next_timer(), Time::never());
}

TEST_F(LocalCopiesTest, AShortReadThatOvertakesIsCopiedWithTheLongOneBehindIt) {
  pair.receive(9, 0, 100);
  pair.send(1, 10);
  pair.deliver_all(pair.b, pair.take_all(pair.a));
  pair.read(2, 100, kFar);
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  pair.read(3, kLong, kFar + 100, 100);
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  EXPECT_EQ(peer.calls, 0u);
  EXPECT_TRUE(pair.a.engine.run_deferred(pair.now));
  EXPECT_EQ(peer.calls, 1u);
  EXPECT_EQ(pair.a.bytes(0, 100 + kLong), pair.b.bytes(kFar, 100 + kLong));
  pair.settle();
  EXPECT_EQ(pair.a.send_cqes.size(), 3u);
}

TEST_F(LocalCopiesTest, AReadWaitsForWhatIsNotExecutedYet) {
  pair.receive(9, 0, 100);
  pair.must_post(pair.a, make_wr(SendOp::kSend, 1), 0, 10);  // nothing else asks for its ACK
  pair.read(2, 100, kFar);
  const std::vector<Packet> packets = pair.take_all(pair.a);
  ASSERT_EQ(ops_of(packets), (std::vector<Op>{Op::kSendOnly}));
  EXPECT_TRUE(packets[0].headers.bth.ack_req);
  EXPECT_EQ(peer.calls, 0u);
  pair.deliver_all(pair.b, packets);
  pair.deliver_all(pair.a, pair.take_all(pair.b));
  pair.settle();
  EXPECT_EQ(peer.done, 1u);
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{2, WQEStatus::kSuccess}}));
}

TEST_F(LocalCopiesTest, WhatIsExecutedIsSentAgainUntilItIsAcknowledged) {
  pair.receive(9, 0, 100);
  pair.send(1, 10);
  pair.deliver_all(pair.b, pair.take_all(pair.a));
  pair.write(2, 100, kFar);
  (void)pair.take_all(pair.b);  // the acknowledgement is lost
  ASSERT_TRUE(pair.fire_timer(pair.a));
  const std::vector<Packet> again = pair.take_all(pair.a);
  EXPECT_EQ(ops_of(again), (std::vector<Op>{Op::kSendOnly}));
  pair.deliver_all(pair.b, again);
  pair.settle();
  EXPECT_EQ(outcomes(pair.a.send_cqes),
            (Outcomes{{1, WQEStatus::kSuccess}, {2, WQEStatus::kSuccess}}));
  EXPECT_EQ(pair.b.receive_cqes.size(), 1u);
  EXPECT_EQ(peer.done, 1u);
}

TEST_F(LocalCopiesTest, WhatDoesNotAskForItsAcknowledgementIsNotOvertaken) {
  pair.receive(9, 0, 100);
  pair.must_post(pair.a, make_wr(SendOp::kSend, 1), 0, 10);
  pair.write(2, 100, kFar);
  const std::optional<Packet> send = pair.take(pair.a);
  ASSERT_TRUE(send && !send->headers.bth.ack_req);
  pair.deliver(pair.b, *send);
  EXPECT_EQ(ops_of(pair.take_all(pair.a)), (std::vector<Op>{Op::kRDMAWriteOnly}));
}

TEST_F(LocalCopiesTest, ResponsesThatBringDataAreNotOvertaken) {
  pair.fetch_add(1, 5, kFar);
  pair.deliver_all(pair.b, pair.take_all(pair.a));
  pair.write(2, 100, kFar);
  EXPECT_EQ(ops_of(pair.take_all(pair.a)), (std::vector<Op>{Op::kRDMAWriteOnly}));
}

TEST_F(LocalCopiesTest, WhatIsNotReadyAtThePeerIsNotOvertaken) {
  pair.send(1, 10);  // for which there is no receive
  pair.deliver_all(pair.b, pair.take_all(pair.a));
  pair.write(2, 100, kFar);
  EXPECT_EQ(ops_of(pair.take_all(pair.a)), (std::vector<Op>{Op::kRDMAWriteOnly}));
  EXPECT_EQ(peer.calls, 0u);
}

TEST_F(LocalCopiesTest, ALongWriteWaitsForWhatIsInFlight) {
  pair.receive(9, 0, 100);
  SendWR send = make_wr(SendOp::kSend, 1);  // unsignaled: nothing else asks for its ACK
  pair.must_post(pair.a, send, 0, 10);
  pair.write(2, 65536, kFar);
  const std::vector<Packet> packets = pair.take_all(pair.a);
  ASSERT_EQ(ops_of(packets), (std::vector<Op>{Op::kSendOnly}));
  EXPECT_TRUE(packets[0].headers.bth.ack_req);
  EXPECT_EQ(peer.calls, 0u);
  pair.deliver_all(pair.b, packets);
  pair.settle();
  EXPECT_EQ(peer.done, 1u);
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{2, WQEStatus::kSuccess}}));
  EXPECT_EQ(pair.b.bytes(kFar, 65536), pair.a.bytes(0, 65536));
}

TEST_F(LocalCopiesTest, WhatThePeerRefusesIsAnsweredAsOnTheWire) {
  SendWR wr = pair.with_remote(signaled(make_wr(SendOp::kRDMAWrite, 1)), kFar);
  wr.r_key.value ^= 0x100;
  pair.must_post(pair.a, wr, 0, 3000);
  pair.settle();
  EXPECT_EQ(peer.calls, 1u);
  EXPECT_EQ(peer.done, 0u);
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kRemoteAccess}}));
  EXPECT_EQ(pair.a.qp.state, QPState::kError);
  EXPECT_EQ(pair.b.qp.state, QPState::kError);
  EXPECT_EQ(pair.b.events.front(), EngineEvent::kAccessError);
}

// A peer that is not ready yet, with all keys in order.
TEST_F(LocalCopiesTest, ARefusalIsNotAskedForEachTime) {
  peer.refuses = true;
  for (u64 i = 0; i < 100; ++i) {
    pair.write(i, 3000, kFar);
    pair.settle();
  }
  EXPECT_EQ(pair.a.send_cqes.size(), 100u);
  EXPECT_EQ(peer.calls, 7u);  // 1, 2, 4, ... 64 apart
  peer.refuses = false;
  for (u64 i = 0; i < 64; ++i) {
    pair.write(i, 3000, kFar);
    pair.settle();
  }
  EXPECT_GT(peer.done, 0u);
}

TEST_F(LocalCopiesTest, PacketsDoNotFollowPacketsForEver) {
  pair.receive(9, 0, 100);
  pair.send(0, 10);
  for (u64 i = 1; i <= 100; ++i) pair.write(i, 8, kFar + 8 * i, 8 * i);
  const std::vector<Packet> packets = pair.take_all(pair.a);
  EXPECT_EQ(packets.size(), 17u);
  EXPECT_TRUE(packets.back().headers.bth.ack_req);
  pair.deliver_all(pair.b, packets);
  pair.settle();
  EXPECT_EQ(pair.a.send_cqes.size(), 101u);
  EXPECT_EQ(counters().local_write_requests, 84u);
  EXPECT_EQ(pair.b.bytes(kFar + 8, 800), pair.a.bytes(8, 800));
}

TEST_F(LocalCopiesTest, ALaterConnectionIsTriedAgain) {
  ASSERT_EQ(pair.b.memory.deregister_mr(pair.b.keys.l_key), Status::kOk);
  pair.write(1, 3000, kFar);
  pair.settle();
  ASSERT_EQ(pair.a.qp.state, QPState::kError);
  pair.b.keys = *pair.b.memory.register_mr(kPD, pair.b.buffer.data(), kBufferBytes,
                                           pair.b.address(), kAllRights);
  pair.a.set_state(QPState::kReset, pair.now);
  pair.b.set_state(QPState::kReset, pair.now);
  pair.connect();
  pair.write(2, 3000, kFar);
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  EXPECT_EQ(peer.done, 1u);
}

TEST_F(LocalCopiesTest, OurOwnKeysAreChecked) {
  SendWR wr = pair.with_remote(signaled(make_wr(SendOp::kRDMAWrite, 1)), kFar);
  SGE list = pair.a.sge(0, 100);
  list.l_key.value ^= 0x100;
  ASSERT_EQ(pair.a.engine.post_send(with_sges(wr, {&list, 1}), pair.now), PostError::kOk);
  pair.settle();
  EXPECT_EQ(peer.calls, 0u);
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kLocalProtection}}));
}

TEST_F(LocalCopiesTest, AReadNeedsTheRightToWriteLocally) {
  const MRKeys read_only = *pair.a.memory.register_mr(kPD, pair.a.buffer.data(), 100,
                                                      pair.a.address(), Access::kRemoteRead);
  SendWR wr = pair.with_remote(signaled(make_wr(SendOp::kRDMARead, 1)), kFar);
  const SGE list{pair.a.address(), 100, read_only.l_key};
  ASSERT_EQ(pair.a.engine.post_send(with_sges(wr, {&list, 1}), pair.now), PostError::kOk);
  pair.settle();
  EXPECT_EQ(peer.calls, 0u);
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kLocalProtection}}));
}

TEST_F(LocalCopiesTest, InlineDataAndListsAreCopied) {
  std::vector<u8> bytes{1, 2, 3, 4, 5, 6, 7, 8};
  const SGE inline_list{reinterpret_cast<u64>(bytes.data()), 8, {}};
  const SendWR wr = pair.with_remote(signaled(make_wr(SendOp::kRDMAWrite, 1)), kFar);
  ASSERT_EQ(pair.a.engine.post_send(with_sges(inline_data(wr), {&inline_list, 1}), pair.now),
            PostError::kOk);
  const std::vector<u8> posted = std::exchange(bytes, std::vector<u8>(8));
  const std::array<SGE, 3> list{pair.a.sge(0, 10), pair.a.sge(500, 0), pair.a.sge(1000, 20)};
  SendWR second = pair.with_remote(signaled(make_wr(SendOp::kRDMAWrite, 2)), kFar + 8);
  ASSERT_EQ(pair.a.engine.post_send(with_sges(second, list), pair.now), PostError::kOk);
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  EXPECT_EQ(pair.b.bytes(kFar, 8), posted);
  EXPECT_EQ(pair.b.bytes(kFar + 8, 10), pair.a.bytes(0, 10));
  EXPECT_EQ(pair.b.bytes(kFar + 18, 20), pair.a.bytes(1000, 20));
}

TEST_F(LocalCopiesTest, ManySmallOnesAreOneCopy) {
  for (u64 i = 0; i < 100; ++i) pair.write(i, 8, kFar + 8 * i, 8 * i);
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  EXPECT_EQ(pair.b.bytes(kFar, 800), pair.a.bytes(0, 800));
  EXPECT_EQ(pair.a.send_cqes.size(), 100u);
  EXPECT_EQ(peer.calls, 2u);
}

TEST_F(LocalCopiesTest, WritesAndReadsKeepTheirOrder) {
  pair.write(1, 8, kFar);
  pair.read(2, 8, kFar, 1000);  // reads what was just written
  pair.write(3, 8, kFar, 2000);
  const std::vector<u8> first = pair.a.bytes(0, 8), last = pair.a.bytes(2000, 8);
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  EXPECT_EQ(pair.a.bytes(1000, 8), first);
  EXPECT_EQ(pair.b.bytes(kFar, 8), last);
  EXPECT_EQ(pair.a.send_cqes.size(), 3u);
}

// 4 MiB, and other QPs and timers have a turn.
TEST_F(LocalCopiesTest, ItRests) {
  constexpr u32 kLength = 1u << 17;
  for (u64 i = 0; i < 64; ++i) pair.write(i, kLength, kFar);
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  const std::size_t before = pair.a.send_cqes.size();
  EXPECT_EQ(before * kLength, 4u << 20);
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  EXPECT_EQ(pair.a.send_cqes.size(), before);
  EXPECT_EQ(pair.a.engine.next_timer(), pair.now);
  ASSERT_TRUE(pair.fire_timer(pair.a));
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  EXPECT_EQ(pair.a.send_cqes.size(), 64u);
}

TEST_F(LocalCopiesTest, NothingStartsInSQD) {
  pair.a.set_state(QPState::kSQD, pair.now);
  pair.write(1, 8, kFar);
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  EXPECT_EQ(peer.calls, 0u);
  pair.a.set_state(QPState::kRTS, pair.now);
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  EXPECT_EQ(peer.done, 1u);
}

// --- long READs, which are deferred for a moment

TEST_F(LocalCopiesTest, ALongReadLetsASendGoFirst) {
  pair.receive(9, 0, 100);
  pair.read(1, kLong, kFar);
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  pair.send(2, 10);
  const std::vector<Packet> packets = pair.take_all(pair.a);
  ASSERT_EQ(ops_of(packets), (std::vector<Op>{Op::kSendOnly}));
  pair.deliver_all(pair.b, packets);
  pair.settle();
  EXPECT_EQ(pair.b.receive_cqes.size(), 1u);
  EXPECT_EQ(peer.calls, 0u);
  EXPECT_TRUE(pair.a.send_cqes.empty());  // the READ's is the first
  EXPECT_EQ(pair.a.engine.next_timer(), pair.now + kDeferral);
  EXPECT_TRUE(pair.a.engine.outputs().sooner_timer);
  EXPECT_TRUE(pair.a.engine.run_deferred(pair.now));
  pair.drain(pair.a);
  EXPECT_FALSE(pair.a.engine.run_deferred(pair.now));
  EXPECT_EQ(pair.a.bytes(0, kLong), pair.b.bytes(kFar, kLong));
  EXPECT_EQ(outcomes(pair.a.send_cqes),
            (Outcomes{{1, WQEStatus::kSuccess}, {2, WQEStatus::kSuccess}}));
  EXPECT_EQ(counters().local_read_requests, 1u);
  EXPECT_EQ(pair.a.engine.next_timer(), Time::never());
}

TEST_F(LocalCopiesTest, AllElseComesAfterALongRead) {
  const auto posts = std::to_array<void (*)(RCPair&)>({
      [](RCPair& p) { p.write(2, 8, kFar); },
      [](RCPair& p) { p.read(2, 8, kFar); },
      [](RCPair& p) { p.fetch_add(2, 5, kFar); },
      [](RCPair& p) { p.must_post(p.a, fence(signaled(make_wr(SendOp::kSend, 2))), 0, 10); },
  });
  u32 copies = 0;
  for (const auto& post : posts) {
    pair.receive(9, 0, 100);
    pair.read(1, kLong, kFar);
    EXPECT_TRUE(pair.take_all(pair.a).empty());
    EXPECT_EQ(peer.calls, copies);
    post(pair);
    (void)pair.take(pair.a);
    ASSERT_FALSE(pair.a.send_cqes.empty());
    EXPECT_EQ(outcomes(pair.a.send_cqes).front(), (std::pair(u64{1}, WQEStatus::kSuccess)));
    pair.a.send_cqes.clear();
    copies = peer.calls;
    pair.a.set_state(QPState::kReset, pair.now);
    pair.b.set_state(QPState::kReset, pair.now);
    pair.connect();
  }
}

TEST_F(LocalCopiesTest, DeferredLongReadsHaveTurns) {
  for (u64 i = 0; i < 65; ++i) pair.read(i, kLong, kFar);
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  EXPECT_EQ(peer.calls, 0u);
  ASSERT_TRUE(pair.fire_timer(pair.a));
  const std::size_t done = pair.a.send_cqes.size();
  EXPECT_GT(done, 55u);
  EXPECT_LT(done, 65u);
  EXPECT_EQ(pair.a.engine.next_timer(), pair.now);
  ASSERT_TRUE(pair.fire_timer(pair.a));
  EXPECT_EQ(pair.a.send_cqes.size(), 65u);
}

TEST_F(LocalCopiesTest, WhatHasPassedARefusedReadIsNotSentTwice) {
  for (u64 i = 0; i < 3; ++i) pair.receive(9, 0, 100);
  pair.read(1, kLong, kFar);
  pair.must_post(pair.a, make_wr(SendOp::kSend, 2), 0, 10);  // nothing else asks for its ACK
  (void)pair.take_all(pair.a);                               // it is lost
  peer.refuses = true;
  ASSERT_TRUE(pair.fire_timer(pair.a));
  pair.send(3, 10);  // it does not pass
  pair.settle();
  EXPECT_EQ(outcomes(pair.a.send_cqes),
            (Outcomes{{1, WQEStatus::kSuccess}, {3, WQEStatus::kSuccess}}));
  EXPECT_EQ(pair.b.receive_cqes.size(), 2u);
  EXPECT_EQ(pair.a.bytes(0, kLong), pair.b.bytes(kFar, kLong));
  EXPECT_EQ(peer.done, 0u);
  EXPECT_EQ(pair.a.engine.next_timer(), Time::never());
}

TEST_F(LocalCopiesTest, ALongReadIsRefusedAsOnTheWire) {
  SendWR wr = pair.with_remote(signaled(make_wr(SendOp::kRDMARead, 1)), kFar);
  wr.r_key.value ^= 0x100;
  pair.must_post(pair.a, wr, 0, kLong);
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  ASSERT_TRUE(pair.fire_timer(pair.a));
  pair.settle();
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kRemoteAccess}}));
}

// WQE 1, which waits; of what is posted after it.
void LocalCopiesTest::check_it_comes_before_an_error() {
  SGE list = pair.a.sge(0, 100);
  list.l_key.value ^= 0x100;
  ASSERT_EQ(
      pair.a.engine.post_send(with_sges(signaled(make_wr(SendOp::kSend, 2)), {&list, 1}), pair.now),
      PostError::kOk);
  pair.settle();
  EXPECT_EQ(outcomes(pair.a.send_cqes),
            (Outcomes{{1, WQEStatus::kSuccess}, {2, WQEStatus::kLocalProtection}}));
}

TEST_F(LocalCopiesTest, ALongReadComesBeforeTheErrorOfWhatHasPassed) {
  pair.read(1, kLong, kFar);
  check_it_comes_before_an_error();
}

TEST_F(LocalCopiesTest, SQDWaitsForALongRead) {
  pair.read(1, kLong, kFar);
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  pair.a.set_state(QPState::kSQD, pair.now);
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  EXPECT_TRUE(pair.a.events.empty());
  ASSERT_TRUE(pair.fire_timer(pair.a));
  EXPECT_EQ(pair.a.events, (std::vector{EngineEvent::kSQDrained}));
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kSuccess}}));
}

TEST_F(LocalCopiesTest, ADeferredLongReadIsFlushed) {
  pair.read(1, kLong, kFar);
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  pair.a.set_state(QPState::kError, pair.now);
  pair.drain(pair.a);
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kFlushed}}));
  EXPECT_FALSE(pair.a.engine.run_deferred(pair.now));
  EXPECT_EQ(pair.a.engine.next_timer(), Time::never());
  EXPECT_EQ(peer.calls, 0u);
}

TEST_F(LocalCopiesTest, ALongReadIsFlushedWithWhatItHasOvertaken) {
  pair.receive(9, 0, 100);
  pair.send(1, 10);
  pair.deliver_all(pair.b, pair.take_all(pair.a));
  pair.read(2, kLong, kFar);
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  pair.a.set_state(QPState::kError, pair.now);
  pair.drain(pair.a);
  EXPECT_EQ(outcomes(pair.a.send_cqes),
            (Outcomes{{1, WQEStatus::kFlushed}, {2, WQEStatus::kFlushed}}));
}

// --- WRITEs, which wait for a poll if the program is known to poll soon

class RCWaitingWritesTest : public LocalCopiesTest {
 protected:
  RCWaitingWritesTest() { earn_trust(program, pair.now); }
  void write(u64 wr_id) {
    pair.write(wr_id, kLong, kFar);
    EXPECT_TRUE(pair.take_all(pair.a).empty());
  }
  [[nodiscard]] u32 more_copies() { return peer.calls - std::exchange(copies_, peer.calls); }
  void poll() {
    (void)pair.a.engine.run_deferred(pair.now);
    pair.drain(pair.a);
    program.on_poll();
  }

 private:
  u32 copies_ = 0;
};

TEST_F(RCWaitingWritesTest, AreCopiedTogetherAtAPoll) {
  write(1);
  write(2);
  EXPECT_EQ(more_copies(), 0u);
  EXPECT_TRUE(pair.a.send_cqes.empty());
  EXPECT_EQ(pair.a.engine.next_timer(), pair.now + kDeferral);
  poll();
  EXPECT_EQ(more_copies(), 1u);
  EXPECT_EQ(pair.b.bytes(kFar, kLong), pair.a.bytes(0, kLong));
  EXPECT_EQ(outcomes(pair.a.send_cqes),
            (Outcomes{{1, WQEStatus::kSuccess}, {2, WQEStatus::kSuccess}}));
  EXPECT_EQ(pair.a.engine.next_timer(), Time::never());
}

TEST_F(RCWaitingWritesTest, ShortOnesWaitToo) {
  for (u64 i = 0; i < PeerMemory::kMaxRanges; ++i) {
    EXPECT_EQ(more_copies(), 0u);
    pair.write(i, 8, kFar + 8 * i);
    EXPECT_TRUE(pair.take_all(pair.a).empty());
  }
  EXPECT_EQ(more_copies(), 1u) << "no more fit into a call";
  EXPECT_EQ(pair.a.send_cqes.size(), PeerMemory::kMaxRanges);
  write(1);
  pair.write(2, 8, kFar);
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  EXPECT_EQ(more_copies(), 0u);
  poll();
  EXPECT_EQ(more_copies(), 1u);
}

TEST_F(RCWaitingWritesTest, ThoseOfAListAreCopiedAtOnce) {
  for (u64 i = 0; i < 3; ++i) pair.write(i, 8, kFar);
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  EXPECT_EQ(more_copies(), 1u);
}

TEST_F(RCWaitingWritesTest, TheFirstAfterAPollDoesNotWait) {
  for (u32 i = 0; i < 10; ++i) {
    poll();
    write(i);
    EXPECT_EQ(more_copies(), 1u);
  }
}

TEST_F(RCWaitingWritesTest, AreCopiedWhenTheyAreMuch) {
  for (u64 i = 0; i < 17; ++i) write(i);
  EXPECT_EQ(more_copies(), 1u);
  EXPECT_EQ(pair.a.send_cqes.size(), 16u);
  pair.write(17, 1u << 17, kFar);
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  EXPECT_EQ(more_copies(), 0u);
  poll();
  EXPECT_EQ(pair.a.send_cqes.size(), 18u);
}

TEST_F(RCWaitingWritesTest, NothingPassesThem) {
  const auto posts = std::to_array<void (*)(RCPair&)>({
      [](RCPair& p) { p.send(2, 10); },
      [](RCPair& p) { p.read(2, 8, kFar); },
      [](RCPair& p) { p.read(2, kLong, kFar); },
      [](RCPair& p) { p.fetch_add(2, 5, kFar); },
  });
  for (const auto& post : posts) {
    write(1);
    EXPECT_EQ(more_copies(), 0u);
    post(pair);
    (void)pair.take(pair.a);
    EXPECT_GE(more_copies(), 1u);
    ASSERT_FALSE(pair.a.send_cqes.empty());
    EXPECT_EQ(outcomes(pair.a.send_cqes).front(), (std::pair(u64{1}, WQEStatus::kSuccess)));
    pair.a.send_cqes.clear();
    pair.a.set_state(QPState::kReset, pair.now);
    pair.b.set_state(QPState::kReset, pair.now);
    pair.connect();
  }
}

TEST_F(RCWaitingWritesTest, WaitAsLongAsMoreFollowAtOnce) {
  write(1);
  pair.now = pair.now + PollHabit::soon(PollHabit::End::kPost, kLong) + us(1);
  write(2);
  EXPECT_EQ(more_copies(), 1u);
  EXPECT_EQ(pair.a.send_cqes.size(), 2u);
  write(3);
  EXPECT_EQ(more_copies(), 1u) << "the program is slow";
}

TEST_F(RCWaitingWritesTest, DoNotWaitForAProgramThatDoesNotPoll) {
  write(1);
  ASSERT_TRUE(pair.fire_timer(pair.a));
  EXPECT_EQ(more_copies(), 1u);
  for (u32 i = 0; i < 10; ++i) write(2);
  EXPECT_EQ(more_copies(), 10u);
}

TEST_F(RCWaitingWritesTest, ThatAreRefusedBecomePackets) {
  write(1);
  write(2);
  peer.refuses = true;
  pair.send(3, 10);
  pair.receive(9, 0, 100);
  pair.settle();
  EXPECT_EQ(
      outcomes(pair.a.send_cqes),
      (Outcomes{{1, WQEStatus::kSuccess}, {2, WQEStatus::kSuccess}, {3, WQEStatus::kSuccess}}));
  EXPECT_EQ(peer.done, 0u);
  EXPECT_EQ(pair.b.bytes(kFar, kLong), pair.a.bytes(0, kLong));
  EXPECT_EQ(pair.b.receive_cqes.size(), 1u);
}

TEST_F(RCWaitingWritesTest, AreRefusedAsOnTheWire) {
  write(1);
  SendWR wr = pair.with_remote(signaled(make_wr(SendOp::kRDMAWrite, 2)), kFar);
  wr.r_key.value ^= 0x100;
  pair.must_post(pair.a, wr, 0, kLong);
  EXPECT_TRUE(pair.take_all(pair.a).empty());
  write(3);
  poll();
  pair.settle();
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kSuccess},
                                                  {2, WQEStatus::kRemoteAccess},
                                                  {3, WQEStatus::kFlushed}}));
}

TEST_F(RCWaitingWritesTest, ComeBeforeTheErrorOfWhatFollows) {
  write(1);
  check_it_comes_before_an_error();
}

// With any mix of refusals, losses and delays, all operations complete, in order, and each SEND
// arrives once.
void LocalCopiesTest::check_any_mix() {
  PRNG prng(11);
  for (u32 round = 0; round < 200; ++round) {
    const u64 count = 1 + prng.below(20);
    program = PollHabit();
    earn_trust(program, pair.now);
    std::vector<u32> sent;
    Outcomes wanted;
    pair.a.send_cqes.clear();
    pair.b.receive_cqes.clear();
    for (u64 i = 0; i < count; ++i) pair.receive(i, 0, 4096);
    for (u64 i = 0; i < count; ++i) {
      const u32 length = 1 + static_cast<u32>(prng.below(3000));
      switch (prng.below(5)) {
        case 0: pair.read(i, kLong, kFar, 2048); break;
        case 4: pair.write(i, kLong, kFar, 0); break;
        case 1: pair.read(i, length, kFar, 2048); break;
        case 2: pair.write(i, length, kFar, 0); break;
        case 3: pair.send(i, length, 0), sent.push_back(length); break;
      }
      wanted.emplace_back(i, WQEStatus::kSuccess);
      peer.refuses = prng.below(3) == 0;
      if (prng.below(4) == 0) program.on_poll();
      if (prng.below(2) == 0) continue;
      const std::vector<Packet> packets = pair.take_all(pair.a);
      if (prng.below(8) != 0) pair.deliver_all(pair.b, packets);  // else they are lost
      const bool is_due =
          pair.a.engine.next_timer() <= pair.now + kDeferral;  // not for what is lost
      if (is_due && prng.below(2) == 0) (void)pair.fire_timer(pair.a);
    }
    for (u32 turn = 0; turn < 100 && pair.a.send_cqes.size() < count; ++turn) {
      pair.settle();
      if (pair.a.send_cqes.size() < count) (void)pair.fire_timer(pair.a);
      peer.refuses = prng.below(3) == 0;
    }
    ASSERT_EQ(outcomes(pair.a.send_cqes), wanted) << round;
    std::vector<u32> got;
    for (const CQE& cqe : pair.b.receive_cqes) got.push_back(cqe.byte_length);
    ASSERT_EQ(got, sent) << round;
    for (std::size_t left = count - sent.size(); left != 0; --left) pair.send(0, 1);
    pair.settle();
    while (pair.fire_timer(pair.a)) pair.settle();
  }
  EXPECT_GT(peer.done, 100u);
}

TEST_F(LocalCopiesTest, AnyMixWithLongOnesKeepsItsOrder) { check_any_mix(); }

class RCShortCutSelectiveTest : public LocalCopiesTest {
 protected:
  RCShortCutSelectiveTest()
      : LocalCopiesTest({.limits = {.path = software_path(),
                                    .retransmission = Retransmission::kSelectiveRepeat}}) {}
};

TEST_F(RCShortCutSelectiveTest, AnyMixWithLongOnesKeepsItsOrder) { check_any_mix(); }

class RCShortCutLimitsTest : public LocalCopiesTest {
 protected:
  RCShortCutLimitsTest() : LocalCopiesTest({.max_rd_atomic = 0}) {}
};

TEST_F(RCShortCutLimitsTest, WithoutAResourceAReadFails) {
  pair.read(1, 8, kFar);
  pair.settle();
  EXPECT_EQ(peer.calls, 0u);
  EXPECT_EQ(outcomes(pair.a.send_cqes), (Outcomes{{1, WQEStatus::kLocalQPOperation}}));
}

}  // namespace
}  // namespace verbena::test
