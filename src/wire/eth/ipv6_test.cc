#include "wire/eth/ipv6.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace verbena {
namespace {

TEST(IPv6HeaderTest, FromCapture) {
  // tests/captures/rxe-ipv6.pcap, frame 1, as tshark prints it: Traffic Class 0, Flow Label 0,
  // Payload Length 88, Next Header UDP (17), Hop Limit 64, fe80::5054:ff:fe77:3 to
  // fe80::5054:ff:fe77:2
  test::expect_golden<IPv6Header>({"rxe-ipv6.pcap", 1, test::kIPAt},
                                  {0x60, 0x00, 0x00, 0x00, 0x00, 0x58, 0x11, 0x40,  //
                                   0xfe, 0x80, 0,    0,    0,    0,    0,    0,
                                   0x50, 0x54, 0x00, 0xff, 0xfe, 0x77, 0x00, 0x03,  //
                                   0xfe, 0x80, 0,    0,    0,    0,    0,    0,
                                   0x50, 0x54, 0x00, 0xff, 0xfe, 0x77, 0x00, 0x02},
                                  {.payload_length = 88,
                                   .next_header = kProtocolUDP,
                                   .hop_limit = 64,
                                   .source = *GID::parse("fe80::5054:ff:fe77:3"),
                                   .destination = *GID::parse("fe80::5054:ff:fe77:2")});
}

TEST(IPv6HeaderTest, EveryFieldFull) {
  std::array<u8, IPv6Header::kSize> bytes = {0x6a, 0xbc, 0xe9, 0xef, 0x12, 0x34, 0x06, 0xff};
  bytes[8] = 0x20;
  bytes[39] = 0x01;
  test::expect_both_ways<IPv6Header>(bytes, {.dscp = 42,
                                             .ecn = ECN::kCE,
                                             .flow_label = 0xce9ef,
                                             .payload_length = 0x1234,
                                             .next_header = kProtocolTCP,
                                             .hop_limit = 255,
                                             .source = *GID::parse("2000::"),
                                             .destination = *GID::parse("::1")});
}

TEST(IPv6HeaderTest, OtherVersionsAreRefused) {
  std::array<u8, IPv6Header::kSize> bytes{};
  bytes[0] = 0x45;
  EXPECT_FALSE(IPv6Header::decode(bytes).has_value());
}

TEST(IPv6HeaderDeathTest, FieldsWiderThanTheWireAreACrash) {
  std::array<u8, IPv6Header::kSize> bytes{};
  EXPECT_DEATH(IPv6Header{.dscp = 64}.encode(bytes), "dscp");
  EXPECT_DEATH(IPv6Header{.flow_label = 0x100000}.encode(bytes), "flow_label");
}

}  // namespace
}  // namespace verbena
