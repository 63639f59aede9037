// The send queue's states and completions, seen through a UC engine (UD shares them).
#include "transport/unreliable_sends.h"

#include <gtest/gtest.h>

#include "transport/uc/engine.h"
#include "transport/unreliable_test_peer.h"

namespace verbena {
namespace {

using Events = std::vector<EngineEvent>;

class UnreliableSendsTest : public testing::Test {
 protected:
  using Peer = test::TestPeer<UCEngine>;

  PostError post(u64 wr_id, const std::vector<SGE>& list, bool signaled = true) {
    SendWR wr;
    wr.wr_id = wr_id;
    wr.signaled = signaled;
    return peer_.post(wr, list);
  }
  PostError post_send(u64 wr_id, u64 length = 8, bool signaled = true) {
    return post(wr_id, {peer_.sge(0, length)}, signaled);
  }
  PostError post_bad(u64 wr_id, bool signaled = true) {
    return post(wr_id, {SGE{0, 8, LKey{77}}}, signaled);
  }
  // Polls one packet only.
  bool send_one() {
    TxPacket packet;
    return peer_.engine->poll_packet(Peer::kNow, MaySend::kAnything, packet);
  }

  Peer peer_{QPType::kUC, QPN{1}, QPN{2}};
};

TEST_F(UnreliableSendsTest, PostIsRefusedBeforeRTS) {
  for (const QPState state : {QPState::kReset, QPState::kInit, QPState::kRTR}) {
    peer_.qp.state = state;
    EXPECT_EQ(post_send(1), PostError::kBadState);
  }
  for (const QPState state : {QPState::kRTS, QPState::kSQD, QPState::kSQE, QPState::kError}) {
    peer_.qp.state = state;
    EXPECT_EQ(post_send(1), PostError::kOk);
  }
}

TEST_F(UnreliableSendsTest, CompletionIsVisibleOnlyAfterTheLastPacketIsPolled) {
  peer_.to_rts();
  ASSERT_EQ(post_send(1, 600), PostError::kOk);  // three packets
  for (u32 packet = 0; packet < 3; ++packet) {
    EXPECT_TRUE(peer_.send_cqes().empty());
    EXPECT_TRUE(send_one());
  }
  EXPECT_FALSE(send_one());
  const std::vector<CQE> cqes = peer_.send_cqes();
  ASSERT_EQ(cqes.size(), 1u);
  EXPECT_EQ(cqes[0], (CQE{.wr_id = 1, .op = CompletionOp::kSend, .qp = QPN{1}, .source_qp = {}}));
}

TEST_F(UnreliableSendsTest, UnsignaledSuccessLeavesNoCompletionUnlessAllAreSignaled) {
  peer_.to_rts();
  ASSERT_EQ(post_send(1, 8, false), PostError::kOk);
  ASSERT_EQ(post_send(2, 8, true), PostError::kOk);
  ASSERT_EQ(post_send(3, 8, false), PostError::kOk);
  EXPECT_EQ(peer_.sent().size(), 3u);
  EXPECT_EQ(test::outcomes(peer_.send_cqes()), (test::Outcomes{{2, WQEStatus::kSuccess}}));
  peer_.qp.signal_all = true;
  ASSERT_EQ(post_send(4, 8, false), PostError::kOk);
  EXPECT_EQ(peer_.sent().size(), 1u);
  EXPECT_EQ(test::outcomes(peer_.send_cqes()), (test::Outcomes{{4, WQEStatus::kSuccess}}));
}

TEST_F(UnreliableSendsTest, QueueTakesItsDepthAndFreesWithTheCompletions) {
  peer_.to_rts();
  for (u64 round = 0; round < 5; ++round) {
    for (u64 id = 0; id < 16; ++id) ASSERT_EQ(post_send(id, 8, id == 15), PostError::kOk);
    EXPECT_EQ(post_send(16), PostError::kQueueFull);
    EXPECT_EQ(peer_.sent().size(), 16u);
    EXPECT_EQ(peer_.send_cqes().size(), 1u);
  }
}

// IBTA 10.3.1.6, 11.6.2: a local error ends the WQE, puts the queue in SQE and flushes the rest.
TEST_F(UnreliableSendsTest, LocalProtectionErrorStopsTheQueueAndSQEFlushesIt) {
  peer_.to_rts();
  ASSERT_EQ(post_send(1), PostError::kOk);
  ASSERT_EQ(post_bad(2, false), PostError::kOk);
  ASSERT_EQ(post_send(3, 8, false), PostError::kOk);
  EXPECT_EQ(peer_.sent().size(), 1u);
  EXPECT_EQ(test::outcomes(peer_.send_cqes()),
            (test::Outcomes{{1, WQEStatus::kSuccess}, {2, WQEStatus::kLocalProtection}}));
  EXPECT_EQ(peer_.events(), Events{EngineEvent::kSQError});
  EXPECT_TRUE(peer_.sent().empty());  // halted until the state follows
  EXPECT_TRUE(peer_.send_cqes().empty());
  peer_.to(QPState::kSQE);
  EXPECT_TRUE(peer_.sent().empty());
  EXPECT_EQ(test::outcomes(peer_.send_cqes()), (test::Outcomes{{3, WQEStatus::kFlushed}}));
  ASSERT_EQ(post_send(4), PostError::kOk);
  EXPECT_EQ(test::outcomes(peer_.send_cqes()), (test::Outcomes{{4, WQEStatus::kFlushed}}));
  EXPECT_EQ(peer_.counters().req_cqe_error, 1u);
}

TEST_F(UnreliableSendsTest, ErrorCompletionIsReportedThoughTheStateChangesFirst) {
  peer_.to_rts();
  ASSERT_EQ(post_bad(1), PostError::kOk);
  ASSERT_EQ(post_send(2), PostError::kOk);
  EXPECT_TRUE(peer_.sent().empty());
  EXPECT_EQ(peer_.events(), Events{EngineEvent::kSQError});
  peer_.to(QPState::kSQE);
  EXPECT_EQ(test::outcomes(peer_.send_cqes()),
            (test::Outcomes{{1, WQEStatus::kLocalProtection}, {2, WQEStatus::kFlushed}}));
}

TEST_F(UnreliableSendsTest, SQERecoversToRTS) {
  peer_.to_rts();
  ASSERT_EQ(post_bad(1), PostError::kOk);
  EXPECT_TRUE(peer_.sent().empty());
  EXPECT_EQ(peer_.events(), Events{EngineEvent::kSQError});
  peer_.to(QPState::kSQE);
  EXPECT_EQ(peer_.send_cqes().size(), 1u);
  peer_.to(QPState::kRTS);
  ASSERT_EQ(post_send(2), PostError::kOk);
  const std::vector<test::PacketBytes> packets = peer_.sent();
  ASSERT_EQ(packets.size(), 1u);
  EXPECT_EQ(test::headers_of(packets[0]).bth.psn, peer_.qp.sq_psn);  // the bad WQE sent nothing
  EXPECT_EQ(test::outcomes(peer_.send_cqes()), (test::Outcomes{{2, WQEStatus::kSuccess}}));
}

TEST_F(UnreliableSendsTest, MessageThatFailsHalfwaySendsNoFurtherPacketAndTheNextBeginsAnew) {
  peer_.to_rts();
  ASSERT_EQ(post(1, {peer_.sge(0, 300), SGE{0, 300, LKey{77}}}), PostError::kOk);
  EXPECT_EQ(peer_.sent().size(), 1u);
  EXPECT_EQ(peer_.events(), Events{EngineEvent::kSQError});
  peer_.to(QPState::kSQE);
  EXPECT_EQ(test::outcomes(peer_.send_cqes()), (test::Outcomes{{1, WQEStatus::kLocalProtection}}));
  peer_.to(QPState::kRTS);
  ASSERT_EQ(post_send(2), PostError::kOk);
  const std::vector<test::PacketBytes> packets = peer_.sent();
  ASSERT_EQ(packets.size(), 1u);
  EXPECT_EQ(test::headers_of(packets[0]).bth.opcode.op, Op::kSendOnly);
  EXPECT_EQ(test::headers_of(packets[0]).bth.psn, peer_.qp.sq_psn.next());
}

// IBTA 10.3.1.5: SQD ends what has begun, starts nothing, and tells when it is done.
TEST_F(UnreliableSendsTest, SQDFinishesTheBegunMessageAndStartsNone) {
  peer_.to_rts();
  ASSERT_EQ(post_send(1, 600), PostError::kOk);
  ASSERT_EQ(post_send(2), PostError::kOk);
  EXPECT_TRUE(send_one());
  peer_.to(QPState::kSQD);
  EXPECT_TRUE(peer_.events().empty());
  EXPECT_EQ(peer_.sent().size(), 2u);
  EXPECT_TRUE(peer_.events().empty());  // its completion is still to be polled
  EXPECT_EQ(test::outcomes(peer_.send_cqes()), (test::Outcomes{{1, WQEStatus::kSuccess}}));
  EXPECT_EQ(peer_.events(), Events{EngineEvent::kSQDrained});
  EXPECT_TRUE(peer_.events().empty());  // once
  ASSERT_EQ(post_send(3), PostError::kOk);
  EXPECT_TRUE(peer_.sent().empty());
  peer_.to(QPState::kRTS);
  EXPECT_EQ(peer_.sent().size(), 2u);
  EXPECT_EQ(test::outcomes(peer_.send_cqes()),
            (test::Outcomes{{2, WQEStatus::kSuccess}, {3, WQEStatus::kSuccess}}));
}

TEST_F(UnreliableSendsTest, SQDOfAnIdleQueueIsDrainedAtOnce) {
  peer_.to_rts();
  peer_.to(QPState::kSQD);
  EXPECT_EQ(peer_.events(), Events{EngineEvent::kSQDrained});
}

// IBTA 10.3.1.7: everything not complete is flushed, signaled or not; later posts too.
TEST_F(UnreliableSendsTest, ErrorFlushesWhatIsNotComplete) {
  peer_.to_rts();
  ASSERT_EQ(post_send(1), PostError::kOk);
  ASSERT_EQ(post_send(2, 600, false), PostError::kOk);
  ASSERT_EQ(post_send(3, 8, false), PostError::kOk);
  EXPECT_TRUE(send_one());
  EXPECT_TRUE(send_one());  // the first packet of 2
  peer_.to(QPState::kError);
  EXPECT_TRUE(peer_.sent().empty());
  const std::vector<CQE> cqes = peer_.send_cqes();
  EXPECT_EQ(test::outcomes(cqes),
            (test::Outcomes{
                {1, WQEStatus::kSuccess}, {2, WQEStatus::kFlushed}, {3, WQEStatus::kFlushed}}));
  EXPECT_TRUE(cqes[2].solicited);
  ASSERT_EQ(post_send(4, 8, false), PostError::kOk);
  EXPECT_EQ(test::outcomes(peer_.send_cqes()), (test::Outcomes{{4, WQEStatus::kFlushed}}));
  EXPECT_TRUE(peer_.events().empty());
}

TEST_F(UnreliableSendsTest, ResetForgetsEverythingAndTheQPStartsOver) {
  peer_.to_rts();
  ASSERT_EQ(post_send(1), PostError::kOk);
  ASSERT_EQ(post_send(2, 600), PostError::kOk);
  ASSERT_EQ(post_bad(3), PostError::kOk);
  EXPECT_TRUE(send_one());
  EXPECT_TRUE(send_one());
  peer_.to(QPState::kReset);
  EXPECT_TRUE(peer_.send_cqes().empty());
  EXPECT_TRUE(peer_.events().empty());
  peer_.qp.sq_psn = PSN{77};
  peer_.to_rts();
  EXPECT_TRUE(peer_.sent().empty());
  ASSERT_EQ(post_send(4), PostError::kOk);
  const std::vector<test::PacketBytes> packets = peer_.sent();
  ASSERT_EQ(packets.size(), 1u);
  EXPECT_EQ(test::headers_of(packets[0]).bth.psn, PSN{77});
  EXPECT_EQ(test::outcomes(peer_.send_cqes()), (test::Outcomes{{4, WQEStatus::kSuccess}}));
}

TEST_F(UnreliableSendsTest, ResetOfAFailedQueueForgetsTheFailure) {
  peer_.to_rts();
  ASSERT_EQ(post_bad(1), PostError::kOk);
  EXPECT_TRUE(peer_.sent().empty());
  peer_.to(QPState::kReset);
  EXPECT_TRUE(peer_.events().empty());
  EXPECT_TRUE(peer_.send_cqes().empty());
}

// --- local operations, in their place in the queue

class LocalOperationsTest : public UnreliableSendsTest {
 protected:
  LocalOperationsTest() {
    bindable_ = peer_.memory
                    .register_mr(Peer::kPD, peer_.buffer.data(), 4096, Peer::kIova,
                                 Access::kLocalWrite | Access::kMWBind)
                    .value();
    window_ = peer_.memory.allocate_mw(Peer::kPD, MWType::k2).value();
    peer_.to_rts();
  }
  PostError post_bind(u64 wr_id, RKey window, RKey new_key) {
    SendWR wr;
    wr.wr_id = wr_id;
    wr.op = SendOp::kBindMW;
    wr.signaled = true;
    wr.mw = window;
    wr.mw_new = new_key;
    wr.mw_bind = {bindable_.l_key, Peer::kIova, 64, Access::kRemoteRead};
    return peer_.post(wr, {});
  }
  PostError post_invalidate(u64 wr_id, RKey key) {
    SendWR wr;
    wr.wr_id = wr_id;
    wr.op = SendOp::kLocalInvalidate;
    wr.signaled = true;
    wr.invalidate = key;
    return peer_.post(wr, {});
  }
  bool window_opens(RKey key) const {
    return static_cast<bool>(
        peer_.memory.remote(Peer::kPD, peer_.qp.qpn, key, Peer::kIova, 64, Access::kRemoteRead));
  }

  MRKeys bindable_;
  RKey window_;
};

TEST_F(LocalOperationsTest, BindAndInvalidateAreExecutedInOrderAndComplete) {
  const RKey key{window_.value ^ 1};
  ASSERT_EQ(post_send(1), PostError::kOk);
  ASSERT_EQ(post_bind(2, window_, key), PostError::kOk);
  EXPECT_FALSE(window_opens(key));  // not before its turn
  EXPECT_EQ(peer_.sent().size(), 1u);
  EXPECT_TRUE(window_opens(key));
  std::vector<CQE> cqes = peer_.send_cqes();
  ASSERT_EQ(cqes.size(), 2u);
  EXPECT_EQ(cqes[1].op, CompletionOp::kBindMW);
  EXPECT_EQ(cqes[1].status, WQEStatus::kSuccess);

  ASSERT_EQ(post_invalidate(3, key), PostError::kOk);
  EXPECT_TRUE(peer_.sent().empty());
  EXPECT_FALSE(window_opens(key));
  cqes = peer_.send_cqes();
  ASSERT_EQ(cqes.size(), 1u);
  EXPECT_EQ(cqes[0].op, CompletionOp::kLocalInvalidate);
}

TEST_F(LocalOperationsTest, RefusedBindIsAnErrorOfTheQueue) {
  ASSERT_EQ(post_bind(1, RKey{window_.value ^ 1}, window_), PostError::kOk);
  ASSERT_EQ(post_send(2), PostError::kOk);
  EXPECT_TRUE(peer_.sent().empty());
  EXPECT_EQ(test::outcomes(peer_.send_cqes()), (test::Outcomes{{1, WQEStatus::kMWBind}}));
  EXPECT_EQ(peer_.events(), Events{EngineEvent::kSQError});
}

TEST_F(LocalOperationsTest, RefusedInvalidateIsAnErrorOfTheQueue) {
  ASSERT_EQ(post_invalidate(1, window_), PostError::kOk);
  EXPECT_TRUE(peer_.sent().empty());
  EXPECT_EQ(test::outcomes(peer_.send_cqes()), (test::Outcomes{{1, WQEStatus::kMWBind}}));
}

TEST_F(LocalOperationsTest, SQDStartsNone) {
  peer_.to(QPState::kSQD);
  ASSERT_EQ(post_bind(1, window_, window_), PostError::kOk);
  EXPECT_TRUE(peer_.sent().empty());
  EXPECT_FALSE(window_opens(window_));
}

}  // namespace
}  // namespace verbena
