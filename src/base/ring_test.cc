#include "base/ring.h"

#include <gtest/gtest.h>

#include <deque>

#include "base/prng.h"

namespace verbena {
namespace {

TEST(RingTest, FirstInFirstOut) {
  Ring<int> ring(3);
  EXPECT_TRUE(ring.empty());
  EXPECT_EQ(ring.push(1), 1);
  ring.push(2);
  EXPECT_EQ(ring.front(), 1);
  EXPECT_EQ(ring[1], 2);
  EXPECT_EQ(ring.pop(), 1);
  EXPECT_EQ(ring.pop(), 2);
  EXPECT_TRUE(ring.empty());
}

TEST(RingTest, IsFullAtTheCapacityAskedFor) {
  for (const std::size_t capacity : {0u, 1u, 2u, 3u, 5u, 8u, 100u}) {
    Ring<std::size_t> ring(capacity);
    EXPECT_EQ(ring.capacity(), capacity);
    for (std::size_t i = 0; i < capacity; ++i) {
      EXPECT_FALSE(ring.full());
      ring.push(i);
    }
    EXPECT_TRUE(ring.full());
    EXPECT_EQ(ring.size(), capacity);
  }
}

TEST(RingTest, PushGivesTheSlot) {
  Ring<int> ring(1);
  ring.push(1) = 7;
  EXPECT_EQ(ring.front(), 7);
}

TEST(RingTest, HoldsMoveOnlyTypes) {
  Ring<std::unique_ptr<int>> ring(2);
  ring.push(std::make_unique<int>(4));
  const std::unique_ptr<int> out = ring.pop();
  EXPECT_EQ(*out, 4);
}

TEST(RingTest, ClearEmpties) {
  Ring<int> ring(2);
  ring.push(1);
  ring.push(2);
  ring.clear();
  EXPECT_TRUE(ring.empty());
  EXPECT_FALSE(ring.full());
}

TEST(RingTest, EqualsADequeOnARandomWalk) {
  PRNG prng(1);
  Ring<u64> ring(13);
  std::deque<u64> model;
  for (int step = 0; step < 10'000; ++step) {
    if (!ring.full() && prng.chance(0.5)) {
      model.push_back(prng.next());
      ring.push(model.back());
    } else if (!ring.empty()) {
      EXPECT_EQ(ring.pop(), model.front());
      model.pop_front();
    }
    ASSERT_EQ(ring.size(), model.size());
    for (std::size_t i = 0; i < model.size(); ++i) ASSERT_EQ(ring[i], model[i]);
  }
}

using RingDeathTest = testing::Test;

TEST(RingDeathTest, MisuseIsACrash) {
  Ring<int> ring(1);
  EXPECT_DEATH(ring.pop(), "empty");
  EXPECT_DEATH(ring.front(), "empty");
  EXPECT_DEATH(ring[0], "size");
  ring.push(1);
  EXPECT_DEATH(ring.push(2), "full");
}

}  // namespace
}  // namespace verbena
