#include "wire/roce/crc32_field.h"

#include <gtest/gtest.h>

#include "base/prng.h"

namespace verbena::crc32_field {
namespace {

// a * b by its definition, one coefficient at a time.
u32 slow_multiply(u32 a, u32 b) {
  u32 product = 0;
  for (u32 bit = kOne; bit != 0; bit >>= 1, b = times_x(b))
    if ((a & bit) != 0) product ^= b;
  return product;
}

TEST(CRC32FieldTest, TimesXAndOverXUndoEachOther) {
  PRNG prng(1);
  EXPECT_EQ(times_x(1), kP);  // x^31 * x = x^32 = P without x^32
  EXPECT_EQ(over_x(kP), 1u);
  for (int i = 0; i < 10'000; ++i) {
    const u32 a = static_cast<u32>(prng.next());
    ASSERT_EQ(over_x(times_x(a)), a);
    ASSERT_EQ(times_x(over_x(a)), a);
  }
}

TEST(CRC32FieldTest, MultiplyIsTheDefinition) {
  PRNG prng(2);
  for (int i = 0; i < 10'000; ++i) {
    const u32 a = static_cast<u32>(prng.next()), b = static_cast<u32>(prng.next());
    ASSERT_EQ(multiply(a, b), slow_multiply(a, b));
    ASSERT_EQ(multiply(a, kOne), a);
    ASSERT_EQ(multiply(0, b), 0u);
  }
}

TEST(CRC32FieldTest, BackwardPowersAreXToTheMinus8N) {
  const BackwardPowers powers;
  u32 power = kOne;
  for (std::size_t n = 0; n <= 0xffff; ++n) {
    ASSERT_EQ(powers.of(n), power) << n;
    for (int i = 0; i < 8; ++i) power = over_x(power);
  }
}

}  // namespace
}  // namespace verbena::crc32_field
