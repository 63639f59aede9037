#include "base/psn.h"

#include <gtest/gtest.h>

namespace verbena {
namespace {

TEST(PSNTest, KeepsTheLow24Bits) {
  EXPECT_EQ(PSN{0x12345678}.value(), 0x345678u);
  EXPECT_EQ(PSN{PSN::kModulus}, PSN{0});
  EXPECT_EQ(PSN{}.value(), 0u);
}

TEST(PSNTest, StepsWrapAround) {
  EXPECT_EQ(PSN{0xffffff}.next(), PSN{0});
  EXPECT_EQ(PSN{0}.previous(), PSN{0xffffff});
  EXPECT_EQ(PSN{0xfffff0}.advanced(0x20), PSN{0x10});
  EXPECT_EQ(PSN{5}.advanced(PSN::kModulus), PSN{5});
}

TEST(PSNTest, DistanceCountsForward) {
  EXPECT_EQ(PSN{7}.distance_to(PSN{7}), 0u);
  EXPECT_EQ(PSN{0xfffffe}.distance_to(PSN{3}), 5u);
  EXPECT_EQ(PSN{3}.distance_to(PSN{0xfffffe}), 0xfffffbu);
}

TEST(PSNTest, BeforeHoldsForLessThanHalfTheCircle) {
  for (const u32 start : {0u, 1u, 0x7fffffu, 0x800000u, 0xffffffu}) {
    const PSN psn{start};
    EXPECT_FALSE(psn.before(psn));
    EXPECT_TRUE(psn.before_or_equal(psn));
    EXPECT_TRUE(psn.before(psn.next()));
    EXPECT_FALSE(psn.next().before(psn));
    EXPECT_TRUE(psn.before(psn.advanced(PSN::kHalf - 1)));
    EXPECT_TRUE(psn.before_or_equal(psn.advanced(PSN::kHalf - 1)));
    EXPECT_FALSE(psn.before(psn.advanced(PSN::kHalf)));
    EXPECT_FALSE(psn.before_or_equal(psn.advanced(PSN::kHalf)));
  }
}

TEST(PSNTest, OfTwoDifferentExactlyOneIsBeforeUnlessOpposite) {
  for (u32 d = 1; d < PSN::kModulus; d += 4099) {
    const PSN a{0xabcdef}, b = a.advanced(d);
    EXPECT_EQ(a.before(b) != b.before(a), d != PSN::kHalf) << d;
  }
}

}  // namespace
}  // namespace verbena
