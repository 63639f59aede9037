#include "transport/rc/scoreboard.h"

#include <gtest/gtest.h>

namespace verbena {
namespace {

constexpr PSN kFirst(64);
PSN at(u32 n) { return kFirst.advanced(n); }

// Packets 0 .. `sent` - 1 have been sent, once each.
Scoreboard board(u32 sent, u32 reordering = 0) {
  Scoreboard b(256, reordering);
  b.reset(kFirst);
  for (u32 i = 0; i < sent; ++i) b.on_sent(at(i));
  return b;
}

bool sack(Scoreboard& b, u64 bits, u32 sent) {
  return b.on_sack({.first = kFirst, .bits = bits}, at(sent));
}

TEST(ScoreboardTest, WhatLaterOnesHaveOvertakenIsLost) {
  Scoreboard b = board(10, 2);
  EXPECT_TRUE(sack(b, 0b1000, 10));
  EXPECT_TRUE(b.request_is_lost(at(0)));
  EXPECT_FALSE(b.request_is_lost(at(1)));
  EXPECT_TRUE(b.is_there(at(3)));
  EXPECT_FALSE(sack(b, 0b1000, 10));  // nothing new
}

TEST(ScoreboardTest, WhatWentAgainIsLostWhenSomethingSentAfterItHasCome) {
  Scoreboard b = board(4);
  (void)sack(b, 0b1000, 4);
  b.on_resent(at(0), 1, at(4));
  EXPECT_FALSE(b.request_is_lost(at(0)));
  b.on_sent(at(4));
  (void)sack(b, 0b1100, 5);  // sent before it
  EXPECT_FALSE(b.request_is_lost(at(0)));
  (void)sack(b, 0b10000, 5);
  EXPECT_TRUE(b.request_is_lost(at(0)));
}

TEST(ScoreboardTest, OnceTheLastHasComeEverythingElseIsLost) {
  Scoreboard b = board(4, 100);
  (void)sack(b, 0b0100, 4);
  EXPECT_FALSE(b.request_is_lost(at(0)));
  (void)sack(b, 0b1000, 4);
  EXPECT_TRUE(b.request_is_lost(at(0)));
}

TEST(ScoreboardTest, WhatWasNeverSentIsNotBelieved) {
  Scoreboard b = board(4);
  EXPECT_FALSE(sack(b, ~u64{0} << 4, 4));
  EXPECT_FALSE(b.request_is_lost(at(0)));
}

TEST(ScoreboardTest, AnAnswerIsLostWhenLaterOnesHaveCome) {
  Scoreboard b = board(1, 1);
  b.on_executed(at(8));
  b.on_answer(at(3));
  b.on_heard(at(4));
  EXPECT_TRUE(b.answer_is_lost(at(0), at(8)));
  EXPECT_TRUE(b.answer_is_lost(at(1), at(8)));
  EXPECT_FALSE(b.answer_is_lost(at(2), at(8)));
  EXPECT_TRUE(b.has_answer(at(3)));
  b.on_heard(at(8));  // the last of all
  EXPECT_TRUE(b.answer_is_lost(at(7), at(8)));
}

TEST(ScoreboardTest, ForcedIsAllOnceAndTheOldestEvenIfItWasKept) {
  Scoreboard b = board(4);
  (void)sack(b, 0b0011, 4);
  b.force(at(4));
  EXPECT_FALSE(b.is_there(at(0)));
  EXPECT_TRUE(b.is_there(at(1)));
  EXPECT_TRUE(b.request_is_lost(at(3)));
  b.on_resent(at(3), 1, at(4));
  EXPECT_FALSE(b.request_is_lost(at(3)));
}

TEST(ScoreboardTest, WhatIsDoneWithIsForgotten) {
  Scoreboard b = board(4);
  (void)sack(b, 0b0110, 4);
  b.on_resent(at(0), 1, at(4));
  b.on_acknowledged(at(0), 4);
  EXPECT_FALSE(b.was_resent(at(0)));
  const u32 round = 512;  // where PSNs share a place with these: they know nothing of each other
  for (u32 i = 0; i < 4; ++i) EXPECT_FALSE(b.has_answer(at(round + i)));
  b.on_acknowledged(at(4), round - 4);
  EXPECT_FALSE(b.is_there(at(round + 1)));
}

}  // namespace
}  // namespace verbena
