#include "wire/eth/ipv4.h"

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "tests/support/golden.h"
#include "wire/eth/internet_checksum.h"

namespace verbena {
namespace {

using Bytes = std::array<u8, IPv4Header::kSize>;

constexpr Bytes kFrame1 = {0x45, 0x00, 0x00, 0x3c, 0xe5, 0x73, 0x40, 0x00, 0x40, 0x11,
                           0x40, 0x9f, 0x0a, 0x4d, 0x00, 0x03, 0x0a, 0x4d, 0x00, 0x02};

// With the checksum made right again after a change.
Bytes with(std::size_t at, u8 value) {
  Bytes bytes = kFrame1;
  bytes[at] = value;
  store_be16(bytes.data() + 10, 0);
  InternetChecksum sum;
  sum.add(bytes);
  store_be16(bytes.data() + 10, sum.finish());
  return bytes;
}

TEST(IPv4HeaderTest, FromCapture) {
  // tests/captures/rxe-rc-write.pcap, frame 1, as tshark prints it: DSCP 0, ECN Not-ECT, Total
  // Length 60, Identification 0xe573, Don't fragment 1, Fragment Offset 0, TTL 64, UDP (17),
  // Header Checksum 0x409f, 10.77.0.3 to 10.77.0.2
  test::expect_golden<IPv4Header>({"rxe-rc-write.pcap", 1, test::kIPAt}, kFrame1,
                                  {.total_length = 60,
                                   .identification = 0xe573,
                                   .dont_fragment = true,
                                   .ttl = 64,
                                   .protocol = kProtocolUDP,
                                   .source = 0x0a4d0003,
                                   .destination = 0x0a4d0002});
}

TEST(IPv4HeaderTest, EveryFieldFull) {
  const IPv4Header header = {.dscp = 63,
                             .ecn = ECN::kCE,
                             .total_length = 65535,
                             .identification = 0xabcd,
                             .dont_fragment = true,
                             .more_fragments = true,
                             .fragment_offset = 0x1fff,
                             .ttl = 255,
                             .protocol = kProtocolTCP,
                             .source = 0xfffefdfc,
                             .destination = 0x01020304};
  Bytes bytes{};
  header.encode(bytes);
  EXPECT_EQ(IPv4Header::decode(bytes), header);
  EXPECT_EQ(bytes[1], 0xff);
  EXPECT_EQ(bytes[6], 0x7f);
}

TEST(IPv4HeaderTest, EveryFlippedBitIsRefused) {  // by the checksum
  for (std::size_t bit = 0; bit < kFrame1.size() * 8; ++bit) {
    Bytes bytes = kFrame1;
    bytes[bit / 8] ^= static_cast<u8>(1u << (bit % 8));
    EXPECT_FALSE(IPv4Header::decode(bytes).has_value()) << bit;
  }
}

TEST(IPv4HeaderTest, WhatRoCECannotCarryIsRefused) {
  EXPECT_TRUE(IPv4Header::decode(with(8, 3)).has_value());
  EXPECT_FALSE(IPv4Header::decode(with(0, 0x46)).has_value()) << "options";
  EXPECT_FALSE(IPv4Header::decode(with(0, 0x44)).has_value()) << "IHL below 5";
  EXPECT_FALSE(IPv4Header::decode(with(0, 0x65)).has_value()) << "version 6";
  EXPECT_FALSE(IPv4Header::decode(with(3, 19)).has_value()) << "total length below 20";
  EXPECT_FALSE(IPv4Header::decode(with(6, 0xc0)).has_value()) << "reserved flag";
}

TEST(IPv4HeaderTest, Fragments) {
  EXPECT_FALSE(IPv4Header::decode(kFrame1)->is_fragment());
  EXPECT_TRUE(IPv4Header::decode(with(6, 0x20))->is_fragment());
  EXPECT_TRUE(IPv4Header::decode(with(7, 0x01))->is_fragment());
}

TEST(IPv4HeaderDeathTest, FieldsWiderThanTheWireAreACrash) {
  Bytes bytes{};
  EXPECT_DEATH(IPv4Header{.dscp = 64}.encode(bytes), "dscp");
  EXPECT_DEATH(IPv4Header{.fragment_offset = 0x2000}.encode(bytes), "fragment_offset");
  EXPECT_DEATH(IPv4Header{.total_length = 19}.encode(bytes), "total_length");
}

}  // namespace
}  // namespace verbena
