#include "device/objects/event_queue.h"

#include <gtest/gtest.h>

#include "device/qp/queue_pair.h"

namespace verbena {
namespace {

struct AsyncEventQueueTest : ::testing::Test {
  QueuePair a{{}, {}}, b{{}, {}};
  AsyncEventQueue queue;
};

TEST_F(AsyncEventQueueTest, EmptyAtFirst) { EXPECT_FALSE(queue.poll().has_value()); }

TEST_F(AsyncEventQueueTest, ObjectsInOrderOfTheirFirstEvent) {
  queue.raise(b.events, AsyncEventType::kSQDrained);
  queue.raise(a.events, AsyncEventType::kQPFatal);
  queue.raise(b.events, AsyncEventType::kQPFatal);
  const std::optional<AsyncEvent> first = queue.poll(), second = queue.poll(), third = queue.poll();
  EXPECT_EQ(first->qp, &b);
  EXPECT_EQ(first->type, AsyncEventType::kQPFatal);
  EXPECT_EQ(second->qp, &b);
  EXPECT_EQ(second->type, AsyncEventType::kSQDrained);
  EXPECT_EQ(third->qp, &a);
  EXPECT_EQ(third->cq, nullptr);
  EXPECT_EQ(third->srq, nullptr);
  EXPECT_FALSE(queue.poll().has_value());
}

TEST_F(AsyncEventQueueTest, TheSameEventTwiceIsOne) {
  queue.raise(a.events, AsyncEventType::kSQDrained);
  queue.raise(a.events, AsyncEventType::kSQDrained);
  EXPECT_TRUE(queue.poll().has_value());
  EXPECT_FALSE(queue.poll().has_value());
  queue.raise(a.events, AsyncEventType::kSQDrained);  // and again after it was taken
  EXPECT_TRUE(queue.poll().has_value());
}

TEST_F(AsyncEventQueueTest, ADestroyedObjectTakesItsEventsAlong) {
  queue.raise(a.events, AsyncEventType::kSQDrained);
  queue.raise(b.events, AsyncEventType::kSQDrained);
  queue.forget(a.events);
  EXPECT_EQ(queue.poll()->qp, &b);
  EXPECT_FALSE(queue.poll().has_value());
}

}  // namespace
}  // namespace verbena
