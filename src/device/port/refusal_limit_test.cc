#include "device/port/refusal_limit.h"

#include <gtest/gtest.h>

namespace verbena {
namespace {

const GID kScanner = *GID::parse("10.0.0.1"), kNeighbour = *GID::parse("10.0.0.2");
constexpr Time kFirstSecond = Time::from_ns(1'000'000'000);

TEST(RefusalLimitTest, OffByZero) {
  RefusalLimit limit(0);
  for (u32 i = 0; i < 1000; ++i) limit.on_refused(kScanner, kFirstSecond);
  EXPECT_FALSE(limit.is_silenced(kScanner, kFirstSecond));
}

TEST(RefusalLimitTest, SilencesTheOneThatScansAndNobodyElse) {
  RefusalLimit limit(10);
  for (u32 i = 0; i < 10; ++i) limit.on_refused(kScanner, kFirstSecond);
  EXPECT_FALSE(limit.is_silenced(kScanner, kFirstSecond));
  limit.on_refused(kScanner, kFirstSecond);
  EXPECT_TRUE(limit.is_silenced(kScanner, kFirstSecond));
  EXPECT_FALSE(limit.is_silenced(kNeighbour, kFirstSecond));
  EXPECT_FALSE(limit.is_silenced(kScanner, kFirstSecond + RefusalLimit::kFirstPause));
}

TEST(RefusalLimitTest, BacksOffUpToALimit) {
  RefusalLimit limit(1);
  Time now = kFirstSecond;
  Duration longest;
  for (u32 i = 0; i < 20; ++i) {
    limit.on_refused(kScanner, now);
    limit.on_refused(kScanner, now);
    Duration silent;
    while (limit.is_silenced(kScanner, now + silent)) silent = silent + ms(10);
    EXPECT_GE(silent, longest);
    longest = std::max(longest, silent);
    now = now + silent;
  }
  EXPECT_EQ(longest, RefusalLimit::kMaxPause);
}

TEST(RefusalLimitTest, ManySourcesDoNotGrowIt) {
  RefusalLimit limit(1);
  for (u32 i = 0; i < 10'000; ++i)
    limit.on_refused(GID::from_ipv4(0x0a000000 + i), kFirstSecond + ms(i));
  for (u32 i = 0; i < 2; ++i) limit.on_refused(kScanner, kFirstSecond + sec(20));
  EXPECT_TRUE(limit.is_silenced(kScanner, kFirstSecond + sec(20)));
}

}  // namespace
}  // namespace verbena
