#include "transport/rc/send_window.h"

#include <gtest/gtest.h>

#include "base/prng.h"

namespace verbena {
namespace {

constexpr u32 kChunk = 4;

class SendWindowTest : public testing::Test {
 protected:
  explicit SendWindowTest(RCLimits limits = {}) : window(SendQueueLimits{.depth = 64}, limits) {
    window.begin(PSN(PSN::kModulus - 3), kChunk);  // it wraps soon
  }
  void post(SendOp op = SendOp::kSend) {
    SendWR wr;
    wr.op = op;
    ASSERT_EQ(window.queue().push(wr, Time()), PostError::kOk);
  }
  void send(u32 packets, SendOp op = SendOp::kSend) {
    post(op);
    window.start(packets);
    for (u32 i = 0; i < packets; ++i) window.advance(window.current(), 1);
  }
  // The order of the indexes and of the PSNs.
  void check() {
    const SendQueue& queue = window.queue();
    ASSERT_LE(queue.begin_index(), window.done());
    ASSERT_LE(window.done(), window.index());
    ASSERT_LE(window.index(), window.fresh());
    ASSERT_LE(window.fresh(), queue.end_index());
    ASSERT_LE(window.in_flight(), window.unacked().distance_to(window.frontier()));
    if (window.is_acknowledged()) return;
    ASSERT_NE(window.oldest().packets, 0u);
    ASSERT_LE(window.left_of(window.oldest(), window.unacked()), window.oldest().packets);
  }

  SendWindow window;
};

TEST_F(SendWindowTest, APacketIsInFlightFromItsSendingToItsAcknowledgement) {
  EXPECT_FALSE(window.waits_for_response());
  send(2);
  EXPECT_EQ(window.in_flight(), 2u);
  EXPECT_TRUE(window.is_expected(window.unacked()));
  EXPECT_FALSE(window.is_expected(window.frontier()));
  EXPECT_FALSE(window.acknowledge(window.oldest(), 1).ends_wqe);
  EXPECT_TRUE(window.acknowledge(window.oldest(), 1).ends_wqe);
  EXPECT_TRUE(window.is_acknowledged());
  EXPECT_EQ(window.done(), 1u);
}

TEST_F(SendWindowTest, RepeatedPacketsKeepTheirPSNs) {
  send(3);
  const PSN first = window.unacked(), end = window.frontier();
  window.move_back();
  EXPECT_TRUE(window.resends());
  EXPECT_FALSE(window.waits_for_response());
  EXPECT_EQ(window.cursor(), first);
  window.advance(window.current(), 3);
  EXPECT_EQ(window.frontier(), end);
  EXPECT_FALSE(window.resends());
  EXPECT_TRUE(window.is_at_end());
}

TEST_F(SendWindowTest, AnAcknowledgementPassesTheCursorThatWasMovedBack) {
  send(2);
  window.move_back();
  const SendWindow::Acknowledged done = window.acknowledge(window.oldest(), 2);
  EXPECT_TRUE(done.passes_cursor);
  EXPECT_EQ(window.cursor(), window.frontier());
  EXPECT_TRUE(window.is_at_end());
}

TEST_F(SendWindowTest, OperationsWithoutPSNsAreDoneInTheirTurn) {
  send(1);
  post();
  window.skip();
  window.complete_local();
  EXPECT_EQ(window.done(), 0u);
  window.acknowledge(window.oldest(), 1);
  window.complete_local();
  EXPECT_EQ(window.done(), 2u);
  EXPECT_TRUE(window.is_at_fresh());
}

TEST_F(SendWindowTest, PiecesOfAREADAreAlignedToItsFirstPSN) {
  send(10, SendOp::kRDMARead);
  const SendWQE& wqe = window.oldest();
  for (u32 i = 0; i < 10; ++i)
    EXPECT_EQ(window.psns_of_piece(wqe, wqe.first_psn.advanced(i)),
              std::min(kChunk - i % kChunk, 10 - i));
}

TEST_F(SendWindowTest, OnePacketSentAtOnceIsStartedAndSent) {
  send(1);
  post();
  const PSN psn = window.frontier();
  window.send_single();
  EXPECT_EQ(window.queue().at(1).first_psn, psn);
  EXPECT_EQ(window.queue().at(1).last_psn, psn);
  EXPECT_EQ(window.in_flight(), 2u);
  EXPECT_TRUE(window.is_at_end());
  window.acknowledge_wqes(window.frontier(), 2);
  EXPECT_TRUE(window.is_acknowledged());
  check();
}

TEST_F(SendWindowTest, WithdrawnOperationsAreNotDone) {
  post();
  post();
  window.skip();
  window.skip();
  window.complete_local();
  EXPECT_EQ(window.done(), 2u);
  window.withdraw_done(1);
  EXPECT_EQ(window.done(), 1u);
}

TEST_F(SendWindowTest, TheMarksKeepTheirOrder) {
  PRNG random(7);
  for (u32 i = 0; i < 20'000; ++i) {
    const u64 what = random.in(0, 9);
    if (what < 2 && window.queue().end_index() - window.done() < 32) {
      post();
    } else if (what < 5 && window.is_at_fresh() && !window.is_at_end()) {
      what == 4 ? window.skip() : window.start(static_cast<u32>(random.in(1, 5)));
    } else if (what < 7 && !window.is_at_fresh()) {
      window.current().packets == 0 ? window.pass_local() : window.advance(window.current(), 1);
    } else if (what == 7 && !window.is_acknowledged()) {
      const u32 left = window.left_of(window.oldest(), window.unacked());
      const u32 sent = window.unacked().distance_to(window.frontier());
      window.acknowledge(window.oldest(), static_cast<u32>(random.in(1, std::min(left, sent))));
    } else if (what == 8) {
      window.move_back();
    }
    window.complete_local();
    while (window.queue().begin_index() < window.done()) {
      window.queue().pop_front();
      window.queue().free_entries(window.queue().take_unreported());
    }
    check();
    if (HasFatalFailure()) FAIL() << i;
  }
  EXPECT_GT(window.done(), 1000u);
}

class SelectiveWindowTest : public SendWindowTest {
 protected:
  SelectiveWindowTest()
      : SendWindowTest(
            {.retransmission = Retransmission::kSelectiveRepeat, .reordering_packets = 1}) {}
};

TEST_F(SelectiveWindowTest, TheCursorPassesWhatHasArrived) {
  send(1);
  send(1);
  send(4);
  window.scoreboard()->on_sent(window.frontier().previous());
  const PSN first = window.unacked();
  SackETH sack{.first = first.advanced(2), .bits = 0b0011};  // the first two are lost
  EXPECT_TRUE(window.scoreboard()->on_sack(sack, window.frontier()));
  window.move_back();
  EXPECT_FALSE(window.skip_arrived());
  EXPECT_TRUE(window.is_lost());
  window.advance(window.current(), 2);
  EXPECT_TRUE(window.skip_arrived());
  EXPECT_EQ(window.cursor(), window.frontier());
  EXPECT_EQ(&window.find(first.advanced(3)), &window.queue().at(2));
}

TEST_F(SelectiveWindowTest, OnlyTheMissingPartOfAnExecutedREADIsRequestedAgain) {
  send(4, SendOp::kRDMARead);
  const PSN first = window.unacked();
  EXPECT_EQ(window.psns_to_request(window.oldest(), first), 4u);
  window.scoreboard()->on_executed(first.advanced(4));
  window.scoreboard()->on_answer(first.advanced(2));
  EXPECT_EQ(window.psns_to_request(window.oldest(), first), 2u);
  EXPECT_EQ(window.psns_to_request(window.oldest(), first.advanced(3)), 1u);
}

}  // namespace
}  // namespace verbena
