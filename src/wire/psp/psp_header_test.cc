#include "wire/psp/psp_header.h"

#include <array>

#include <gtest/gtest.h>

namespace verbena {
namespace {

// The header that the specification's reference program writes for its configuration
// "encrypt_transport_crypt_off_128": SPI 9A345678, crypt offset 1, AES-GCM-128, the first IV.
constexpr std::array<u8, PSPHeader::kSize> kReference = {17, 1, 1, 0x01, 0x9a, 0x34, 0x56, 0x78,
                                                         0,  0, 0, 0,    0,    0,    0,    1};

TEST(PSPHeaderTest, ReferenceHeaderBothWays) {
  const auto header = PSPHeader::decode(kReference);
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(*header, (PSPHeader{.crypt_offset = 1, .spi = 0x9a345678, .iv = 1}));
  EXPECT_EQ(header->crypt_offset_bytes(), 4u);
  std::array<u8, PSPHeader::kSize> again{};
  header->encode(again);
  EXPECT_EQ(again, kReference);
  for (std::size_t n = 0; n < kReference.size(); ++n)
    EXPECT_FALSE(PSPHeader::decode(std::span(kReference).first(n)).has_value()) << n;
}

TEST(PSPHeaderTest, VersionAndFlags) {
  auto bytes = kReference;
  bytes[3] = 0xc5;
  const auto header = PSPHeader::decode(bytes);
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(header->version, PSPVersion::kAES256GCM);
  EXPECT_TRUE(header->sampled);
  EXPECT_TRUE(header->drop_after_sampling);
}

TEST(PSPHeaderTest, CookieLengthensTheHeader) {
  std::array<u8, PSPHeader::kSize + 8> bytes{};
  std::ranges::copy(kReference, bytes.begin());
  bytes[1] = 2;
  bytes[3] = 0x03;
  bytes[22] = 0x13;
  bytes[23] = 0x89;
  const auto header = PSPHeader::decode(bytes);
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(header->size(), bytes.size());
  EXPECT_EQ(header->cookie, 0x1389u);
  std::array<u8, PSPHeader::kSize + PSPHeader::kCookieSize> again{};
  header->encode(again);
  EXPECT_EQ(again, bytes);
  EXPECT_FALSE(PSPHeader::decode(std::span(bytes).first(23)).has_value());
}

TEST(PSPHeaderTest, RefusesWhatNoSenderWrites) {
  const auto with = [](std::size_t at, u8 value) {
    auto bytes = kReference;
    bytes[at] = value;
    return PSPHeader::decode(bytes).has_value();
  };
  EXPECT_FALSE(with(3, 0x00));  // the bit that is always one
  EXPECT_FALSE(with(3, 0x11));  // version 4
  EXPECT_FALSE(with(1, 0));     // no room for the IV
  EXPECT_FALSE(with(1, 2));     // a cookie without V
  EXPECT_FALSE(with(2, 0x40));  // reserved bits of the crypt offset
}

}  // namespace
}  // namespace verbena
