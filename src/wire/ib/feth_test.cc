#include "wire/ib/feth.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace verbena {
namespace {

TEST(FETHTest, AsA19DrawsIt) {
  test::expect_both_ways<FETH>({0x00, 0x00, 0x00, 0x01}, {.global = true});
  test::expect_both_ways<FETH>({0x00, 0x00, 0x00, 0x02}, {.persistent = true});
  test::expect_both_ways<FETH>(
      {0x00, 0x00, 0x00, 0x13},
      {.global = true, .persistent = true, .selectivity = FlushSelectivity::kRegion});
}

TEST(FETHTest, ReservedBitsAreIgnoredAndReservedLevelsKept) {
  const std::array<u8, FETH::kSize> bytes = {0xff, 0xff, 0xff, 0xed};
  EXPECT_EQ(FETH::decode(bytes),
            (FETH{.global = true, .selectivity = static_cast<FlushSelectivity>(2)}));
}

}  // namespace
}  // namespace verbena
