#include "fabric/infiniband/link_credits.h"

#include <gtest/gtest.h>

#include <deque>

#include "base/prng.h"

namespace verbena::fabric {
namespace {

constexpr u32 kBlock = CreditConfig::kBlockBytes;

TEST(LinkCredits, ALaneMaySendWhileThereIsRoomForTheLongest) {
  LinkCredits sender({.buffer_blocks = 200, .longest_blocks = 65});
  EXPECT_TRUE(sender.may_send(0));
  sender.on_sent(0, 65 * kBlock);
  sender.on_sent(0, 65 * kBlock);
  EXPECT_TRUE(sender.may_send(0));
  sender.on_sent(0, 6 * kBlock);  // 64 are left
  EXPECT_FALSE(sender.may_send(0));
  EXPECT_TRUE(sender.may_send(1));
  sender.on_limit(0, 201);
  EXPECT_TRUE(sender.may_send(0));
}

TEST(LinkCredits, PartsOfABlockCountAsAWholeOne) {
  LinkCredits receiver({.buffer_blocks = 100, .longest_blocks = 10});
  receiver.on_received(0, 1);
  receiver.on_received(0, 65);
  EXPECT_EQ(receiver.held_bytes(0), 3 * kBlock);
  receiver.on_freed(0, 65);
  EXPECT_EQ(receiver.held_bytes(0), kBlock);
  EXPECT_EQ(receiver.tell(0), 100 + 2);
}

TEST(LinkCredits, TheNeighbourIsToldOfEnoughOrWhenItCannotSend) {
  LinkCredits receiver({.buffer_blocks = 40, .longest_blocks = 10, .update_blocks = 8});
  receiver.on_received(0, 10 * kBlock);
  receiver.on_freed(0, 7 * kBlock);
  EXPECT_FALSE(receiver.update_is_due(0));
  receiver.on_freed(0, 1 * kBlock);
  EXPECT_TRUE(receiver.update_is_due(0));
  EXPECT_EQ(receiver.tell(0), 48);
  EXPECT_FALSE(receiver.update_is_due(0));
  receiver.on_received(0, 29 * kBlock);
  receiver.on_freed(0, 1 * kBlock);
  EXPECT_TRUE(receiver.update_is_due(0));  // 9 are left to send
}

TEST(LinkCredits, BuffersFollowTheLink) {
  const InfiniBandConfig config;
  const LinkConfig near{.rate = gbps(100), .delay = ns(10)}, far{.rate = gbps(400), .delay = us(5)};
  EXPECT_LT(credits_for(config, near).buffer_blocks, credits_for(config, {}).buffer_blocks);
  EXPECT_GE(credits_for(config, near).buffer_blocks, 3 * credits_for(config, near).longest_blocks);
  EXPECT_EQ(credits_for(config, far).buffer_blocks, CreditConfig::kMostBlocks);
  InfiniBandConfig said;
  said.buffer_bytes = 10'000;
  EXPECT_EQ(credits_for(said, {}).buffer_blocks, 156u);
}

// Both ends, with flow control packets that come late: counters go round many times, the buffer
// never overflows (a CHECK), and whoever waits is heard in the end.
TEST(LinkCredits, RandomTrafficNeverOverflowsAndNeverStops) {
  PRNG prng(7);
  for (u32 run = 0; run < 50; ++run) {
    const u32 longest = static_cast<u32>(1 + prng.below(65));
    const CreditConfig config{.buffer_blocks = static_cast<u32>(
                                  longest + prng.below(CreditConfig::kMostBlocks - longest + 1)),
                              .longest_blocks = longest,
                              .update_blocks = static_cast<u32>(1 + prng.below(300))};
    LinkCredits sender(config), receiver(config);
    std::deque<u32> held;
    std::deque<u16> limits;  // under way
    u32 sent = 0;
    for (u32 step = 0; step < 20'000; ++step) {
      const bool must_free = !sender.may_send(0) && limits.empty();
      if (sender.may_send(0) && prng.chance(0.6)) {
        const u32 bytes = static_cast<u32>(1 + prng.below(longest * kBlock));
        sender.on_sent(0, bytes);
        receiver.on_received(0, bytes);
        held.push_back(bytes);
        ++sent;
      } else if (!held.empty() && (must_free || prng.chance(0.6))) {
        receiver.on_freed(0, held.front());
        held.pop_front();
      }
      if (receiver.update_is_due(0)) limits.push_back(receiver.tell(0));
      if (!limits.empty() && prng.chance(0.3)) {
        sender.on_limit(0, limits.front());
        limits.pop_front();
      }
      ASSERT_TRUE(sender.may_send(0) || !limits.empty() || !held.empty()) << run;
    }
    EXPECT_GT(sent, 2000u) << run;
  }
}

}  // namespace
}  // namespace verbena::fabric
