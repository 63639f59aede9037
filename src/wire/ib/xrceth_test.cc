#include "wire/ib/xrceth.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace verbena {
namespace {

TEST(XRCETHTest, AsA14_4_1DrawsIt) {  // no peer that we can capture speaks XRC
  test::expect_both_ways<XRCETH>({0x00, 0xab, 0xcd, 0xef}, {.xrc_srq = 0xabcdef});
}

TEST(XRCETHTest, TheReservedByteIsIgnored) {
  const std::array<u8, XRCETH::kSize> bytes = {0xff, 0x00, 0x00, 0x01};
  EXPECT_EQ(XRCETH::decode(bytes), XRCETH{.xrc_srq = 1});
}

TEST(XRCETHDeathTest, AnSRQOfMoreThan24BitsIsACrash) {
  std::array<u8, XRCETH::kSize> bytes{};
  EXPECT_DEATH(XRCETH{.xrc_srq = 0x1000000}.encode(bytes), "xrc_srq");
}

}  // namespace
}  // namespace verbena
