#include "device/objects/shared_receive_queue.h"

#include <gtest/gtest.h>

namespace verbena {
namespace {

struct SharedReceiveQueueTest : ::testing::Test {
  void post(u64 wr_id) {
    const SGE sge{wr_id * 100, 10, LKey{5}};
    EXPECT_EQ(srq.queue().push({.wr_id = wr_id, .sg_list = {&sge, 1}}), PostError::kOk);
  }
  u64 take() {
    ReceiveWQE wqe;
    EXPECT_TRUE(srq.queue().take(wqe));
    EXPECT_EQ(wqe.sges[0].address, wqe.wr_id * 100);
    return wqe.wr_id;
  }
  ProtectionDomain pd;
  SharedReceiveQueue srq{0, 1, {.pd = &pd, .limits = {.depth = 4, .max_sge = 2}}};
};

TEST_F(SharedReceiveQueueTest, LimitIsReachedOnceAndThenDisarmed) {
  for (u64 id = 0; id < 4; ++id) post(id);
  EXPECT_EQ(srq.modify({.limit = 3}), Status::kOk);
  take();
  EXPECT_FALSE(srq.take_limit_reached());  // 3 are not fewer than 3
  take();
  EXPECT_TRUE(srq.take_limit_reached());
  EXPECT_EQ(srq.limit(), 0u);
  take();
  EXPECT_FALSE(srq.take_limit_reached());
}

TEST_F(SharedReceiveQueueTest, WithoutALimitThereIsNoEvent) {
  EXPECT_FALSE(srq.take_limit_reached());
}

TEST_F(SharedReceiveQueueTest, LimitAboveTheDepthIsRefused) {
  EXPECT_EQ(srq.modify({.limit = 4}), Status::kOk);
  EXPECT_EQ(srq.modify({.limit = 5}), Status::kInvalidArgument);
  EXPECT_EQ(srq.limit(), 4u);
}

TEST_F(SharedReceiveQueueTest, ResizeKeepsTheContentAndThePlace) {
  ReceiveQueue* const place = &srq.queue();
  for (u64 id = 0; id < 4; ++id) post(id);
  EXPECT_EQ(srq.modify({.depth = 3}), Status::kInvalidArgument);
  EXPECT_EQ(srq.modify({.depth = 6}), Status::kOk);
  EXPECT_EQ(srq.limits().depth, 6u);
  EXPECT_EQ(srq.limits().max_sge, 2u);
  EXPECT_EQ(&srq.queue(), place);
  post(4);
  for (u64 id = 0; id < 5; ++id) EXPECT_EQ(take(), id);
}

TEST_F(SharedReceiveQueueTest, ResizeBelowTheLimitIsRefused) {
  EXPECT_EQ(srq.modify({.limit = 3}), Status::kOk);
  EXPECT_EQ(srq.modify({.depth = 2}), Status::kInvalidArgument);
  EXPECT_EQ(srq.modify({.depth = 3}), Status::kOk);
}

TEST_F(SharedReceiveQueueTest, AChangeOfBothTakesEffectWholeOrNotAtAll) {
  EXPECT_EQ(srq.modify({.depth = 8, .limit = 9}), Status::kInvalidArgument);
  EXPECT_EQ(srq.limits().depth, 4u);
  EXPECT_EQ(srq.modify({.depth = 8, .limit = 8}), Status::kOk);
  EXPECT_EQ(srq.modify({.depth = 2, .limit = 1}), Status::kOk) << "below the old limit";
  EXPECT_EQ(srq.limits().depth, 2u);
  EXPECT_EQ(srq.limit(), 1u);
}

TEST_F(SharedReceiveQueueTest, ResizeBelowTheEntriesThatAreNotFreeIsRefused) {
  for (u64 id = 0; id < 4; ++id) post(id);
  take();
  EXPECT_EQ(srq.modify({.depth = 3}), Status::kInvalidArgument) << "its CQE has not been polled";
  srq.queue().free_entries(1);
  EXPECT_EQ(srq.modify({.depth = 3}), Status::kOk);
}

}  // namespace
}  // namespace verbena
