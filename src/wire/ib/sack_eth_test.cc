#include "wire/ib/sack_eth.h"

#include <gtest/gtest.h>

#include <array>

namespace verbena {
namespace {

TEST(SackETHTest, EveryFieldIsInItsPlace) {
  const SackETH sack{.first = PSN(0x0a0b40), .bits = 0x8000000000000001};
  std::array<u8, SackETH::kSize> bytes{};
  sack.encode(bytes);
  EXPECT_EQ(bytes,
            (std::array<u8, SackETH::kSize>{0, 0x0a, 0x0b, 0x40, 0x80, 0, 0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(SackETH::decode(bytes), sack);
  for (std::size_t n = 0; n < SackETH::kSize; ++n)
    EXPECT_FALSE(SackETH::decode(std::span(bytes).first(n)).has_value()) << n;
}

TEST(SackETHTest, ReservedBitsAreIgnored) {
  const std::array<u8, SackETH::kSize> bytes = {0xff, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0, 2};
  EXPECT_EQ(SackETH::decode(bytes), (SackETH{.first = PSN(64), .bits = 2}));
}

TEST(SackETHTest, AFirstPSNThatIsNoMultipleOf64IsRefused) {
  const std::array<u8, SackETH::kSize> bytes = {0, 0, 0, 0x41};
  EXPECT_FALSE(SackETH::decode(bytes).has_value());
}

}  // namespace
}  // namespace verbena
