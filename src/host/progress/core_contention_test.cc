#include "host/progress/core_contention.h"

#include <gtest/gtest.h>

namespace verbena::host {
namespace {

constexpr Time kOrigin = Time() + sec(100);

TEST(CoreContentionTest, AnOfferThatNobodyTakesChangesNothing) {
  CoreContention contention;
  contention.on_core_returned(kOrigin, kOrigin + CoreContention::kTaken - ns(1));
  EXPECT_FALSE(contention.is_core_wanted(kOrigin));
}

TEST(CoreContentionTest, TheRestDoublesWhileTheCoreIsTaken) {
  CoreContention contention;
  Time now = kOrigin;
  for (Duration rest = DoublingRest::kMin; rest < DoublingRest::kMax; rest = rest * 2) {
    contention.on_core_returned(now - CoreContention::kTaken, now);
    EXPECT_TRUE(contention.is_core_wanted(now + rest - ns(1))) << rest.ns();
    EXPECT_FALSE(contention.is_core_wanted(now + rest)) << rest.ns();
    now = now + rest;
  }
}

TEST(CoreContentionTest, TheRestIsShortAgainAfterQuietTimes) {
  CoreContention contention;
  for (const Time now : {kOrigin, kOrigin + ms(20)})
    contention.on_core_returned(now - CoreContention::kTaken, now);
  const Time later = kOrigin + sec(10);
  contention.on_core_returned(later - CoreContention::kTaken, later);
  EXPECT_FALSE(contention.is_core_wanted(later + DoublingRest::kMin));
}

}  // namespace
}  // namespace verbena::host
