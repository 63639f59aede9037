#include "device/objects/completion_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace verbena {
namespace {

CQE cqe(u64 wr_id, QPN qp = QPN{1}) { return {.wr_id = wr_id, .qp = qp, .source_qp = {}}; }
CQE solicited(u64 wr_id) {
  CQE result = cqe(wr_id);
  result.solicited = true;
  return result;
}
CQE failed(u64 wr_id) {
  CQE result = cqe(wr_id);
  result.status = WQEStatus::kRetryExceeded;
  return result;
}

std::vector<u64> ids_in(CompletionQueue& cq) {
  std::array<CQE, 64> out;
  std::vector<u64> ids;
  const u32 count = cq.poll(out);
  for (u32 i = 0; i < count; ++i) ids.push_back(out[i].wr_id);
  return ids;
}

using Ids = std::vector<u64>;

TEST(CompletionQueueTest, ACQEIsMadeInItsPlace) {
  CompletionQueue cq(0, 1, nullptr);
  cq.next() = cqe(1);
  EXPECT_EQ(cq.push(), CQPush::kAdded);
  cq.next() = cqe(2);  // of which nothing is left
  EXPECT_EQ(cq.push(), CQPush::kOverrun);
  cq.next() = cqe(3);
  EXPECT_EQ(cq.push(), CQPush::kDropped);
  EXPECT_EQ(ids_in(cq), (Ids{1}));
}

TEST(CompletionQueueTest, FirstInFirstOutAroundTheRing) {
  CompletionQueue cq(0, 3, nullptr);
  std::array<CQE, 2> out;
  for (u64 id = 0; id < 20; ++id) {
    EXPECT_EQ(cq.push(cqe(id)), CQPush::kAdded);
    ASSERT_EQ(cq.poll(out), 1u);
    EXPECT_EQ(out[0], cqe(id));
  }
  EXPECT_EQ(cq.poll(out), 0u);
}

TEST(CompletionQueueTest, PollTakesNoMoreThanThereIsRoomFor) {
  CompletionQueue cq(0, 8, nullptr);
  for (u64 id = 0; id < 5; ++id) EXPECT_EQ(cq.push(cqe(id)), CQPush::kAdded);
  std::array<CQE, 2> out;
  EXPECT_EQ(cq.poll(out), 2u);
  EXPECT_EQ(cq.poll({}), 0u);
  EXPECT_EQ(ids_in(cq), (Ids{2, 3, 4}));
}

constexpr Time kNow = Time::from_ns(1000);

TEST(CompletionQueueTest, NotificationIsForTheNextCompletionOnly) {
  CompletionQueue cq(0, 8, nullptr);
  EXPECT_EQ(cq.push(cqe(1)), CQPush::kAdded);
  EXPECT_TRUE(cq.request_notification(NotifyOn::kAnyCompletion, kNow)) << "one is there";
  EXPECT_EQ(cq.push(cqe(2)), CQPush::kNotificationDue);
  EXPECT_EQ(cq.push(cqe(3)), CQPush::kAdded);
}

TEST(CompletionQueueTest, SolicitedOnlyWaitsForASolicitedOne) {
  CompletionQueue cq(0, 8, nullptr);
  cq.request_notification(NotifyOn::kSolicitedOnly, kNow);
  EXPECT_EQ(cq.push(cqe(1)), CQPush::kAdded);
  EXPECT_EQ(cq.push(solicited(2)), CQPush::kNotificationDue);
  EXPECT_EQ(cq.push(solicited(3)), CQPush::kAdded);
}

TEST(CompletionQueueTest, LeftoversAreWhatTheRequestHasFound) {
  CompletionQueue cq(0, 8, nullptr);
  EXPECT_FALSE(cq.request_notification(NotifyOn::kAnyCompletion, kNow));
  for (u64 id = 0; id < 3; ++id) (void)cq.push(cqe(id));
  EXPECT_FALSE(cq.has_leftovers()) << "that was told of";
  EXPECT_TRUE(cq.request_notification(NotifyOn::kAnyCompletion, kNow));
  EXPECT_EQ(cq.requested_at(), kNow);
  std::array<CQE, 2> out;
  EXPECT_EQ(cq.poll(out), 2u);
  EXPECT_TRUE(cq.has_leftovers());
  EXPECT_EQ(cq.poll(out), 1u);
  EXPECT_FALSE(cq.has_leftovers());
}

TEST(CompletionQueueTest, LeftoversAreThoseThatFit) {
  CompletionQueue cq(0, 8, nullptr);
  EXPECT_EQ(cq.push(cqe(1)), CQPush::kAdded);
  EXPECT_FALSE(cq.request_notification(NotifyOn::kSolicitedOnly, kNow));
  EXPECT_EQ(cq.push(solicited(2)), CQPush::kNotificationDue);
  EXPECT_EQ(cq.push(cqe(3)), CQPush::kAdded);
  EXPECT_TRUE(cq.request_notification(NotifyOn::kSolicitedOnly, kNow));
  std::array<CQE, 1> out;
  EXPECT_EQ(cq.poll(out), 1u);
  EXPECT_TRUE(cq.has_leftovers());
  EXPECT_EQ(cq.poll(out), 1u);
  EXPECT_FALSE(cq.has_leftovers()) << "the last one is not solicited";
}

TEST(CompletionQueueTest, LeftoversOfAQPThatGoesAreNone) {
  CompletionQueue cq(0, 8, nullptr);
  EXPECT_EQ(cq.push(cqe(1, QPN{7})), CQPush::kAdded);
  EXPECT_TRUE(cq.request_notification(NotifyOn::kAnyCompletion, kNow));
  cq.remove(QPN{7});
  EXPECT_FALSE(cq.has_leftovers());
}

TEST(CompletionQueueTest, AnErrorCountsAsSolicited) {
  CompletionQueue cq(0, 8, nullptr);
  cq.request_notification(NotifyOn::kSolicitedOnly, kNow);
  EXPECT_EQ(cq.push(failed(1)), CQPush::kNotificationDue);
}

TEST(CompletionQueueTest, AnyCompletionOutranksSolicitedOnlyInEitherOrder) {
  CompletionQueue cq(0, 8, nullptr);
  cq.request_notification(NotifyOn::kAnyCompletion, kNow);
  cq.request_notification(NotifyOn::kSolicitedOnly, kNow);
  EXPECT_EQ(cq.push(cqe(1)), CQPush::kNotificationDue);
  cq.request_notification(NotifyOn::kSolicitedOnly, kNow);
  cq.request_notification(NotifyOn::kAnyCompletion, kNow);
  EXPECT_EQ(cq.push(cqe(2)), CQPush::kNotificationDue);
}

TEST(CompletionQueueTest, OverrunKeepsWhatIsThereAndDropsTheRest) {
  CompletionQueue cq(0, 2, nullptr);
  EXPECT_EQ(cq.push(cqe(1)), CQPush::kAdded);
  EXPECT_EQ(cq.push(cqe(2)), CQPush::kAdded);
  EXPECT_FALSE(cq.overrun());
  EXPECT_EQ(cq.push(cqe(3)), CQPush::kOverrun);
  EXPECT_TRUE(cq.overrun());
  EXPECT_EQ(ids_in(cq), (Ids{1, 2}));
  EXPECT_EQ(cq.push(cqe(4)), CQPush::kDropped);  // room again, but the CQ has failed
  EXPECT_EQ(ids_in(cq), Ids{});
}

TEST(CompletionQueueTest, ResizeKeepsTheContentInOrder) {
  CompletionQueue cq(0, 4, nullptr);
  for (u64 id = 0; id < 3; ++id) EXPECT_EQ(cq.push(cqe(id)), CQPush::kAdded);
  EXPECT_EQ(ids_in(cq), (Ids{0, 1, 2}));  // the ring now begins in the middle
  for (u64 id = 3; id < 7; ++id) EXPECT_EQ(cq.push(cqe(id)), CQPush::kAdded);
  EXPECT_EQ(cq.resize(3), Status::kInvalidArgument);
  EXPECT_EQ(cq.capacity(), 4u);
  EXPECT_EQ(cq.resize(5), Status::kOk);
  EXPECT_EQ(cq.push(cqe(7)), CQPush::kAdded);
  EXPECT_EQ(cq.push(cqe(8)), CQPush::kOverrun);
  EXPECT_EQ(ids_in(cq), (Ids{3, 4, 5, 6, 7}));
}

TEST(CompletionQueueTest, RemovesTheCompletionsOfOneQP) {
  CompletionQueue cq(0, 8, nullptr);
  for (u64 id = 0; id < 6; ++id)
    EXPECT_EQ(cq.push(cqe(id, QPN{id % 3 == 0 ? 7u : 8u})), CQPush::kAdded);
  EXPECT_EQ(cq.remove(QPN{7}), 0u);
  EXPECT_EQ(ids_in(cq), (Ids{1, 2, 4, 5}));
}

TEST(CompletionQueueTest, TellsHowManyReceivesItRemoves) {
  CompletionQueue cq(0, 8, nullptr);
  for (const CompletionOp op :
       {CompletionOp::kReceive, CompletionOp::kSend, CompletionOp::kReceiveRDMAWithImmediate}) {
    CQE made = cqe(0, QPN{7});
    made.op = op;
    EXPECT_EQ(cq.push(made), CQPush::kAdded);
  }
  EXPECT_EQ(cq.remove(QPN{7}), 2u);
}

CQE cqe_at(u64 wr_id, Time at) {
  CQE made = cqe(wr_id);
  made.completed_at = at;
  return made;
}

TEST(CompletionQueueTest, ModerationCountsCompletions) {
  CompletionQueue cq(0, 8, nullptr);
  cq.moderate({.count = 3, .period = us(10)});
  cq.request_notification(NotifyOn::kAnyCompletion, kNow);
  EXPECT_EQ(cq.push(cqe_at(1, Time::from_ns(100))), CQPush::kNotificationLater);
  EXPECT_EQ(cq.notification_deadline(), Time::from_ns(100) + us(10));
  EXPECT_EQ(cq.push(cqe_at(2, Time::from_ns(200))), CQPush::kAdded);
  EXPECT_EQ(cq.push(cqe_at(3, Time::from_ns(300))), CQPush::kNotificationDue);
  EXPECT_EQ(cq.notification_deadline(), Time::never());
  EXPECT_EQ(cq.push(cqe_at(4, Time::from_ns(400))), CQPush::kAdded);
  cq.request_notification(NotifyOn::kAnyCompletion, kNow);
  EXPECT_EQ(cq.push(cqe_at(5, Time::from_ns(500))), CQPush::kNotificationLater) << "counts anew";
}

TEST(CompletionQueueTest, HalfAModerationIsNone) {
  for (const CQModeration& off :
       {CQModeration{.count = 5}, CQModeration{.period = us(5)}, CQModeration{1, us(5)}}) {
    CompletionQueue cq(0, 8, nullptr);
    cq.moderate(off);
    cq.request_notification(NotifyOn::kAnyCompletion, kNow);
    EXPECT_EQ(cq.push(cqe(1)), CQPush::kNotificationDue);
  }
}

TEST(CompletionQueueTest, AnIgnoredOverrunCostsTheOldest) {
  CompletionQueue cq(0, 3, nullptr, OnOverrun::kOverwriteOldest);
  for (u64 id = 0; id < 7; ++id) EXPECT_EQ(cq.push(cqe(id)), CQPush::kAdded);
  EXPECT_FALSE(cq.overrun());
  EXPECT_EQ(ids_in(cq), (Ids{4, 5, 6}));
}

}  // namespace
}  // namespace verbena
