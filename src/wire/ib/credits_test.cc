#include "wire/ib/credits.h"

#include <gtest/gtest.h>

namespace verbena {
namespace {

TEST(CreditsTest, KnownValues) {
  EXPECT_EQ(credits_from_code(0), 0u);
  EXPECT_EQ(credits_from_code(4), 4u);
  EXPECT_EQ(credits_from_code(5), 6u);
  EXPECT_EQ(credits_from_code(16), 256u);
  EXPECT_EQ(credits_from_code(30), 32768u);
  EXPECT_EQ(credits_from_code(kNoCredits), kUnlimitedCredits);
}

TEST(CreditsTest, CountsDoubleEverySecondCode) {
  for (u8 code = 4; code <= 28; ++code)
    EXPECT_EQ(credits_from_code(static_cast<u8>(code + 2)), credits_from_code(code) * 2);
}

TEST(CreditsTest, EveryCodeBothWays) {
  for (u8 code = 0; code <= 30; ++code) EXPECT_EQ(code_from_credits(credits_from_code(code)), code);
}

TEST(CreditsTest, NeverGrantsMoreThanThereAre) {
  for (u32 count = 0; count <= 40'000; ++count) {
    const u8 code = code_from_credits(count);
    ASSERT_LE(credits_from_code(code), count);
    ASSERT_TRUE(code == 30 || credits_from_code(static_cast<u8>(code + 1)) > count) << count;
  }
  EXPECT_EQ(code_from_credits(kUnlimitedCredits), 30);
}

}  // namespace
}  // namespace verbena
