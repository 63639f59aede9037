#include "wire/eth/internet_checksum.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace verbena {
namespace {

u16 checksum_of(std::span<const u8> bytes) {
  InternetChecksum sum;
  sum.add(bytes);
  return sum.finish();
}

TEST(InternetChecksumTest, TheExampleOfRFC1071) {  // section 3: the sum is ddf2
  const std::array<u8, 8> bytes = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
  EXPECT_EQ(checksum_of(bytes), static_cast<u16>(~0xddf2));
}

TEST(InternetChecksumTest, AnOddByteIsTheUpperHalf) {
  EXPECT_EQ(checksum_of(std::array<u8, 1>{0x12}), static_cast<u16>(~0x1200));
  EXPECT_EQ(checksum_of(std::array<u8, 3>{0x12, 0x34, 0x56}), static_cast<u16>(~(0x1234 + 0x5600)));
}

TEST(InternetChecksumTest, OfNothing) { EXPECT_EQ(InternetChecksum().finish(), 0xffff); }

TEST(InternetChecksumTest, PartsAddUp) {
  const std::array<u8, 6> bytes = {0xff, 0xff, 0xfe, 0x01, 0x12, 0x34};
  InternetChecksum sum;
  sum.add(std::span(bytes).first(2));
  sum.add16(0xfe01);
  sum.add(std::span(bytes).last(2));
  EXPECT_EQ(sum.finish(), checksum_of(bytes));
}

TEST(InternetChecksumTest, CarriesAreFoldedHoweverMany) {
  const std::vector<u8> ones(65534, 0xff);
  EXPECT_EQ(checksum_of(ones), 0);
}

}  // namespace
}  // namespace verbena
