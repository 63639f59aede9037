#include "wire/eth/udp.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace verbena {
namespace {

TEST(UDPHeaderTest, FromCapture) {
  // tests/captures/rxe-rc-write.pcap, frame 1, as tshark prints it: Source Port 49476, Destination
  // Port 4791, Length 40, Checksum 0x0000
  test::expect_golden<UDPHeader>({"rxe-rc-write.pcap", 1, test::kIPAt + 20},
                                 {0xc1, 0x44, 0x12, 0xb7, 0x00, 0x28, 0x00, 0x00},
                                 {.source_port = 49476, .destination_port = 4791, .length = 40});
}

TEST(UDPHeaderTest, EveryFieldFull) {
  test::expect_both_ways<UDPHeader>(
      {0xff, 0xfe, 0x01, 0x02, 0xff, 0xff, 0xab, 0xcd},
      {.source_port = 0xfffe, .destination_port = 0x0102, .length = 0xffff, .checksum = 0xabcd});
}

TEST(UDPHeaderTest, ALengthBelowItsOwnIsRefused) {
  std::array<u8, UDPHeader::kSize> bytes{};
  for (u8 length = 0; length < 16; ++length) {
    bytes[5] = length;
    EXPECT_EQ(UDPHeader::decode(bytes).has_value(), length >= 8) << int{length};
  }
}

TEST(UDPChecksumTest, AsTsharkComputesIt) {
  // A datagram of 01 02 03 from port 49476 to 4792; tshark, checking: "should be 0x133b" over IPv4
  // (10.77.0.3 to 10.77.0.2), "should be 0x8b3c" over IPv6 (fe80::5054:ff:fe77:3 to ..:2).
  const std::array<u8, 3> payload = {1, 2, 3};
  const UDPHeader header = {.source_port = 49476, .destination_port = 4792, .length = 11};
  EXPECT_EQ(udp_checksum(GID::from_ipv4(0x0a4d0003), GID::from_ipv4(0x0a4d0002), header, payload),
            0x133b);
  EXPECT_EQ(udp_checksum(*GID::parse("fe80::5054:ff:fe77:3"), *GID::parse("fe80::5054:ff:fe77:2"),
                         header, payload),
            0x8b3c);
}

TEST(UDPChecksumTest, NeverSaysNotComputed) {
  // A source port that makes the sum 0xffff, whose complement would be 0.
  UDPHeader header = {.length = 8};
  const GID zero = GID::from_ipv4(0);
  header.source_port = udp_checksum(zero, zero, header, {});
  EXPECT_EQ(udp_checksum(zero, zero, header, {}), 0xffff);
}

}  // namespace
}  // namespace verbena
