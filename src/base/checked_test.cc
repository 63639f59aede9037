#include "base/checked.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/types.h"

namespace verbena {
namespace {

TEST(CheckedTest, SumsUpToTheLargestNumber) {
  EXPECT_EQ(checked_sum<u32>(~0u - 1, 1), ~0u);
  EXPECT_EQ(checked_sum<u32>(~0u, 1), std::nullopt);
  EXPECT_EQ(checked_sum<u64>(~u64{0}, ~u64{0}), std::nullopt);
  EXPECT_EQ(checked_sum<u16>(0xffff, 1), std::nullopt) << "not promoted to int";
}

TEST(CheckedTest, Products) {
  EXPECT_EQ(checked_product<u32>(0xffff, 0x10001), ~0u);
  EXPECT_EQ(checked_product<u32>(0x10000, 0x10000), std::nullopt);
  EXPECT_EQ(checked_product<u64>(u64{1} << 32, u64{1} << 31), u64{1} << 63);
}

TEST(CheckedTest, TotalsOfParts) {
  struct Part {
    u64 length;
  };
  const std::vector<Part> fits = {{1}, {2}, {~u64{0} - 3}}, wraps = {{16}, {~u64{0}}, {5}};
  EXPECT_EQ(checked_total<u64>(fits, &Part::length), ~u64{0});
  EXPECT_EQ(checked_total<u64>(wraps, &Part::length), std::nullopt);
  EXPECT_EQ(checked_total<u64>(std::vector<Part>{}, &Part::length), 0u);
}

}  // namespace
}  // namespace verbena
