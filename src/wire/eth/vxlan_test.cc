#include "wire/eth/vxlan.h"

#include <gtest/gtest.h>

namespace verbena {
namespace {

// RFC 7348, 5: flags with I set, 24 bits reserved, VNI, 8 bits reserved.
TEST(VXLANTest, BytesOfTheHeader) {
  const std::array<u8, VXLANHeader::kSize> bytes{0x08, 0, 0, 0, 0x12, 0x34, 0x56, 0};
  EXPECT_EQ(VXLANHeader::decode(bytes), (VXLANHeader{.vni = 0x123456}));
  std::array<u8, VXLANHeader::kSize> again{};
  VXLANHeader{.vni = 0x123456}.encode(again);
  EXPECT_EQ(again, bytes);
}

TEST(VXLANTest, ReservedBitsAreIgnoredAndTheVNIIsNeeded) {
  std::array<u8, VXLANHeader::kSize> bytes{0xff, 1, 2, 3, 0, 0, 7, 9};
  EXPECT_EQ(VXLANHeader::decode(bytes)->vni, 7u);
  bytes[0] = 0xf7;
  EXPECT_FALSE(VXLANHeader::decode(bytes).has_value());
  for (std::size_t n = 0; n < VXLANHeader::kSize; ++n)
    EXPECT_FALSE(VXLANHeader::decode(std::span(bytes).first(n)).has_value()) << n;
}

}  // namespace
}  // namespace verbena
