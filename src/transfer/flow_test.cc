#include "transfer/flow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/prng.h"

namespace verbena::transfer {
namespace {

constexpr u32 kPiece = 1000;

FlowLimits small_limits() {
  return {.transfers = 4,
          .copies = 100,
          .requests_per_lane = 4,
          .window_bytes = 3 * kPiece,
          .piece_bytes = kPiece};
}

TransferOrder order_of(u32 id, u64 bytes, u8 priority = 0, bool notifies = false) {
  return {.id = id,
          .operation = Operation::kWrite,
          .copies = {{.local = u64{id} << 32, .remote = u64{id} << 40, .length = bytes}},
          .priority = priority,
          .notifies = notifies};
}

std::vector<Request> drain(Flow& flow) {
  std::vector<Request> requests;
  while (const auto request = flow.poll_request()) requests.push_back(*request);
  return requests;
}

TEST(Flow, IssuesPiecesWithinTheWindowAndNotifiesLast) {
  Flow flow(small_limits());
  flow.on_lane_up(0, 4);
  ASSERT_TRUE(flow.start(order_of(1, 4 * kPiece + 5, 0, true)));
  std::vector<Request> requests = drain(flow);
  ASSERT_EQ(requests.size(), 3u);  // the window
  EXPECT_EQ(requests[2].copy.remote, (u64{1} << 40) + 2 * kPiece);
  flow.on_complete(0, 2);
  requests = drain(flow);
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[1].copy.length, 5u);
  EXPECT_FALSE(flow.poll_outcome());
  flow.on_complete(0, 4);
  requests = drain(flow);
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].kind, Request::Kind::kNotify);
  EXPECT_FALSE(flow.poll_outcome());
  flow.on_complete(0, 5);
  EXPECT_EQ(flow.poll_outcome()->result, Result::kDone);
  EXPECT_TRUE(flow.is_idle());
  EXPECT_EQ(flow.retired_bytes(), 4u * kPiece + 5);
}

// The peer is stopped: it never says that its queue pair is gone.
TEST(Flow, EndsCancelledReadsWhenThisSideHasEnded) {
  for (const bool is_cancelled_first : {true, false}) {
    Flow flow(small_limits());
    flow.on_lane_up(0, 4);
    TransferOrder read = order_of(1, kPiece);
    read.operation = Operation::kRead;
    ASSERT_TRUE(flow.start(read));
    ASSERT_TRUE(flow.start({.id = 2, .copies = {}, .notifies = true}));
    ASSERT_TRUE(flow.start(order_of(3, kPiece)));
    ASSERT_EQ(drain(flow).size(), 3u);
    flow.pause_lane(0);
    if (is_cancelled_first)
      for (const u32 id : {1u, 2u, 3u}) flow.cancel(id);
    EXPECT_FALSE(flow.poll_outcome());
    flow.on_local_end(0);
    if (!is_cancelled_first)
      for (const u32 id : {1u, 2u, 3u}) flow.cancel(id);
    for (const u32 id : {1u, 2u}) {
      const auto outcome = flow.poll_outcome();
      ASSERT_TRUE(outcome.has_value());
      EXPECT_EQ(outcome->transfer, id);
      EXPECT_EQ(outcome->result, Result::kCancelled);
    }
    EXPECT_FALSE(flow.poll_outcome());  // the WRITE may still arrive
    flow.on_lane_down(0);
    EXPECT_EQ(flow.poll_outcome()->transfer, 3u);
    EXPECT_TRUE(flow.is_idle());
  }
}

// The others go to other lanes, when the peer's side has ended too.
TEST(Flow, KeepsReadsThatGoOnWhenThisSideHasEnded) {
  Flow flow(small_limits());
  flow.on_lane_up(0, 4);
  TransferOrder read = order_of(1, kPiece);
  read.operation = Operation::kRead;
  ASSERT_TRUE(flow.start(read));
  const std::vector<Request> before = drain(flow);
  flow.pause_lane(0);
  flow.on_local_end(0);
  flow.on_lane_down(0);
  EXPECT_FALSE(flow.poll_outcome());
  flow.on_lane_up(0, 4);
  const std::vector<Request> again = drain(flow);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].copy, before[0].copy);
  flow.on_complete(0, again[0].sequence);
  EXPECT_EQ(flow.poll_outcome()->result, Result::kDone);
}

// A layer of a KV cache is ready after the other. The copies of two layers may be joined.
TEST(Flow, IssuesOnlyWhatIsReadyAndNotifiesAfterAll) {
  Flow flow(small_limits());
  flow.on_lane_up(0, 4);
  TransferOrder order = order_of(1, 2 * kPiece, 0, true);
  order.ready_bytes = 0;
  ASSERT_TRUE(flow.start(order));
  EXPECT_TRUE(drain(flow).empty());
  flow.advance(1, 300);
  std::vector<Request> requests = drain(flow);
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].copy.length, 300u);
  flow.on_complete(0, 0);
  EXPECT_TRUE(drain(flow).empty());  // no notification yet
  EXPECT_FALSE(flow.poll_outcome());
  flow.advance(1, 100);  // changes nothing
  EXPECT_TRUE(drain(flow).empty());
  flow.advance(1, 2 * kPiece);
  requests = drain(flow);
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].copy.remote, (u64{1} << 40) + 300);
  EXPECT_EQ(requests[0].copy.length + requests[1].copy.length, 2u * kPiece - 300);
  flow.on_complete(0, 2);
  requests = drain(flow);
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].kind, Request::Kind::kNotify);
}

TEST(Flow, CancelsWhatIsNotReady) {
  Flow flow(small_limits());
  flow.on_lane_up(0, 4);
  TransferOrder order = order_of(1, kPiece);
  order.ready_bytes = 10;
  ASSERT_TRUE(flow.start(order));
  ASSERT_EQ(drain(flow).size(), 1u);
  flow.cancel(1);
  EXPECT_FALSE(flow.poll_outcome());
  flow.on_complete(0, 0);
  EXPECT_EQ(flow.poll_outcome()->result, Result::kCancelled);
}

TEST(Flow, StripesOverLanes) {
  Flow flow(small_limits());
  for (const u32 lane : {0, 1, 2}) flow.on_lane_up(lane, 4);
  ASSERT_TRUE(flow.start(order_of(1, 9 * kPiece)));
  std::map<u32, u64> bytes;
  for (const Request& request : drain(flow)) bytes[request.lane] += request.copy.length;
  EXPECT_EQ(bytes, (std::map<u32, u64>{{0, 3 * kPiece}, {1, 3 * kPiece}, {2, 3 * kPiece}}));
}

TEST(Flow, HigherPriorityFirstAndEqualOnesShare) {
  Flow flow(small_limits());
  ASSERT_TRUE(flow.start(order_of(1, 2 * kPiece)));
  ASSERT_TRUE(flow.start(order_of(2, 2 * kPiece)));
  ASSERT_TRUE(flow.start(order_of(3, 1 * kPiece, 9)));
  flow.on_lane_up(0, 4);
  std::vector<u32> turns;
  for (u64 sequence = 0; const auto request = flow.poll_request(); ++sequence) {
    turns.push_back(request->transfer);
    flow.on_complete(0, sequence);
  }
  EXPECT_EQ(turns.front(), 3u);
  EXPECT_NE(turns[1], turns[2]);
  EXPECT_EQ(turns.size(), 5u);
}

TEST(Flow, RequestsOfADeadLaneGoToOthers) {
  Flow flow(small_limits());
  flow.on_lane_up(0, 4);
  ASSERT_TRUE(flow.start(order_of(1, 3 * kPiece, 0, true)));
  EXPECT_EQ(drain(flow).size(), 3u);
  flow.on_complete(0, 0);
  flow.on_lane_down(0);
  EXPECT_TRUE(drain(flow).empty());
  flow.on_complete(0, 2);  // late, of the dead path: means nothing
  EXPECT_FALSE(flow.poll_outcome());
  flow.on_lane_up(1, 4);
  EXPECT_EQ(drain(flow).size(), 2u);
  flow.on_complete(1, 1);
  EXPECT_EQ(drain(flow)[0].kind, Request::Kind::kNotify);
  flow.on_lane_down(1);  // with the notification
  flow.on_lane_up(0, 4);
  const std::vector<Request> again = drain(flow);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].kind, Request::Kind::kNotify);
  flow.on_complete(0, again[0].sequence);
  EXPECT_EQ(flow.poll_outcome()->result, Result::kDone);
}

TEST(Flow, ALaneThatFailedTakesOneRequestUntilOneSucceeds) {
  Flow flow(small_limits());
  flow.on_lane_up(0, 4);
  ASSERT_TRUE(flow.start(order_of(1, 9 * kPiece)));
  EXPECT_EQ(drain(flow).size(), 3u);
  flow.on_lane_down(0);
  flow.on_lane_up(0, 4);
  const std::vector<Request> probe = drain(flow);
  ASSERT_EQ(probe.size(), 1u);
  flow.on_complete(0, probe[0].sequence);
  EXPECT_EQ(drain(flow).size(), 3u);
}

TEST(Flow, CancelWaitsForWhatIsOutstanding) {
  Flow flow(small_limits());
  flow.on_lane_up(0, 4);
  ASSERT_TRUE(flow.start(order_of(1, 9 * kPiece, 0, true)));
  EXPECT_EQ(drain(flow).size(), 3u);
  flow.cancel(1);
  EXPECT_FALSE(flow.poll_outcome());
  EXPECT_TRUE(drain(flow).empty());
  flow.on_complete(0, 2);
  EXPECT_EQ(flow.poll_outcome()->result, Result::kCancelled);
  ASSERT_TRUE(flow.start(order_of(2, kPiece)));
  flow.fail(2, "refused");  // nothing outstanding: at once
  EXPECT_EQ(flow.poll_outcome()->why, "refused");
}

TEST(Flow, NotificationsNeedCredits) {
  Flow flow(small_limits());
  flow.on_lane_up(0, 1);
  for (u32 id = 0; id < 3; ++id) ASSERT_TRUE(flow.start({.id = id, .notifies = true}));
  EXPECT_EQ(drain(flow).size(), 1u);
  flow.on_complete(0, 0);
  EXPECT_TRUE(drain(flow).empty());
  flow.add_notify_credits(0, 1);
  EXPECT_EQ(drain(flow).size(), 1u);
  ASSERT_TRUE(flow.start(order_of(7, kPiece)));  // copies need none
  EXPECT_EQ(drain(flow).size(), 1u);
}

TEST(Flow, LimitsTransfersAndBlocks) {
  Flow flow(small_limits());
  TransferOrder large{.id = 9, .copies = std::vector<Copy>(101, Copy{.length = 1})};
  EXPECT_FALSE(flow.start(large));
  for (u32 id = 0; id < 4; ++id) ASSERT_TRUE(flow.start(order_of(id, 1)));
  EXPECT_FALSE(flow.start(order_of(5, 1)));
  flow.fail_all("the peer died");
  for (u32 id = 0; id < 4; ++id) EXPECT_EQ(flow.poll_outcome()->why, "the peer died");
  EXPECT_TRUE(flow.start(order_of(5, 1)));
}

TEST(Flow, EmptyTransferIsDoneAtOnce) {
  Flow flow(small_limits());
  ASSERT_TRUE(flow.start({.id = 1}));
  EXPECT_EQ(flow.poll_outcome()->result, Result::kDone);
  ASSERT_TRUE(flow.start({.id = 2, .notifies = true}));  // but a notification needs a lane
  EXPECT_FALSE(flow.poll_outcome());
  flow.on_lane_up(0, 4);
  EXPECT_EQ(drain(flow).size(), 1u);
}

// Lanes die and return, requests complete in any number: each byte is transferred, each transfer
// ends once, and its notification is the last of its requests.
TEST(Flow, RandomFailuresLoseNothing) {
  for (u64 seed = 1; seed <= 200; ++seed) {
    PRNG prng(seed);
    Flow flow(small_limits());
    std::map<u32, u64> written, expected;
    std::map<u32, int> outcomes, notified;
    std::array<std::deque<Request>, 3> sent;
    u32 next = 0;
    std::array<bool, 3> up{};
    for (int step = 0; step < 3000 && (next < 20 || !flow.is_idle()); ++step) {
      const u32 lane = static_cast<u32>(prng.next() % 3);
      switch (prng.next() % 8) {
        case 0:
          if (next < 20) {
            const u64 bytes = prng.next() % (8 * kPiece);
            if (flow.start(order_of(next, bytes, static_cast<u8>(prng.next() % 2), true)))
              expected[next++] = bytes;
          }
          break;
        case 1:
          if (up[lane] && prng.next() % 4 == 0) {
            flow.on_lane_down(lane);
            sent[lane].clear();
            up[lane] = false;
          }
          break;
        case 2:
          if (!up[lane]) flow.on_lane_up(lane, 4);
          up[lane] = true;
          break;
        default:
          if (!sent[lane].empty()) {
            const Request done = sent[lane].front();
            sent[lane].pop_front();
            written[done.transfer] += done.copy.length;
            if (done.kind == Request::Kind::kNotify) {
              ++notified[done.transfer];
              flow.add_notify_credits(lane, 1);
            }
            flow.on_complete(lane, done.sequence);
          }
      }
      for (const Request& request : drain(flow)) sent[request.lane].push_back(request);
      while (const auto outcome = flow.poll_outcome()) ++outcomes[outcome->transfer];
    }
    EXPECT_TRUE(flow.is_idle()) << seed;
    for (const auto& [id, bytes] : expected) {
      EXPECT_EQ(outcomes[id], 1) << seed;
      EXPECT_EQ(written[id], bytes) << seed;
      EXPECT_EQ(notified[id], 1) << seed;
    }
  }
}

}  // namespace
}  // namespace verbena::transfer
