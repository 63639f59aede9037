#include "base/prng.h"

#include <gtest/gtest.h>

namespace verbena {
namespace {

TEST(PRNGTest, ReferenceStream) {
  // xoshiro256** seeded by splitmix64 from 0, as other implementations give it.
  PRNG prng(0);
  EXPECT_EQ(prng.next(), 11091344671253066420u);
  EXPECT_EQ(prng.next(), 13793997310169335082u);
  EXPECT_EQ(prng.next(), 1900383378846508768u);
  EXPECT_EQ(prng.next(), 7684712102626143532u);
}

TEST(PRNGTest, SameSeedSameStream) {
  PRNG a(42), b(42), c(43);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const u64 value = a.next();
    EXPECT_EQ(value, b.next());
    differs |= value != c.next();
  }
  EXPECT_TRUE(differs);
}

TEST(PRNGTest, BoundsAreKeptAndReached) {
  PRNG prng(7);
  std::array<int, 6> counts{};
  for (int i = 0; i < 6000; ++i) ++counts[prng.in(0, 5)];
  for (const int count : counts) EXPECT_NEAR(count, 1000, 200);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(prng.below(1), 0u);
    EXPECT_EQ(prng.in(9, 9), 9u);
  }
}

TEST(PRNGTest, ChanceIsTheFraction) {
  PRNG prng(8);
  int hits = 0;
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_FALSE(prng.chance(0.0));
    EXPECT_TRUE(prng.chance(1.0));
    hits += prng.chance(0.01) ? 1 : 0;
  }
  EXPECT_NEAR(hits, 100, 50);
}

TEST(PRNGTest, ForkIsAnotherStream) {
  PRNG prng(9);
  PRNG fork = prng.fork();
  EXPECT_NE(prng.next(), fork.next());
}

}  // namespace
}  // namespace verbena
