#include "transport/ud/grh_bytes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/pcap.h"

namespace verbena {
namespace {

// tests/captures/rxe-ud.pcap, frame 1, as tshark prints it: 10.77.0.3 to 10.77.0.2, total length
// 116, TTL 64, DSCP and ECN 0. The Identification (0xe9e4 there) is not known behind the link: 0
// here.
TEST(GRHBytesTest, IPv4HeaderLiesInTheLastTwentyBytes) {
  const std::array<u8, GRH::kSize> bytes = grh_bytes({.source = GID::from_ipv4(0x0a4d0003),
                                                      .destination = GID::from_ipv4(0x0a4d0002),
                                                      .traffic_class = 0,
                                                      .hop_limit = 64,
                                                      .transport_bytes = 88});
  std::vector<u8> expected = test::captured_frame("rxe-ud.pcap", 1);
  expected = {expected.begin() + 14, expected.begin() + 34};
  expected[4] = expected[5] = 0;
  expected[10] = 0x25;  // the checksum without it: 0x3bf6 + 0xe9e4, and the carry
  expected[11] = 0xdb;
  EXPECT_TRUE(std::all_of(bytes.begin(), bytes.begin() + 20, [](u8 b) { return b == 0; }));
  EXPECT_EQ(std::vector<u8>(bytes.begin() + 20, bytes.end()), expected);
}

// RFC 1071: with its checksum in place, a header sums up to 0xffff.
TEST(GRHBytesTest, IPv4ChecksumIsValidWhateverTheFields) {
  for (u32 i = 0; i < 4096; ++i) {
    const std::array<u8, GRH::kSize> bytes =
        grh_bytes({.source = GID::from_ipv4(i * 0x01234567),
                   .destination = GID::from_ipv4(i * 0x89abcdef),
                   .traffic_class = static_cast<u8>(i),
                   .hop_limit = static_cast<u8>(i >> 4),
                   .transport_bytes = static_cast<u16>(i)});
    u32 sum = 0;
    for (std::size_t at = 20; at < 40; at += 2) sum += u32{bytes[at]} * 256 + bytes[at + 1];
    sum = (sum & 0xffff) + (sum >> 16);
    ASSERT_EQ((sum & 0xffff) + (sum >> 16), 0xffffu) << i;
  }
}

TEST(GRHBytesTest, IPv6HeaderIsTheGRH) {
  GID source, destination;
  source.bytes[0] = destination.bytes[0] = 0xfe;
  source.bytes[15] = 1;
  destination.bytes[15] = 2;
  const std::array<u8, GRH::kSize> bytes = grh_bytes({.source = source,
                                                      .destination = destination,
                                                      .traffic_class = 0x68,
                                                      .hop_limit = 63,
                                                      .transport_bytes = 88});
  EXPECT_EQ(GRH::decode(bytes), (GRH{.traffic_class = 0x68,
                                     .payload_length = 96,
                                     .next_header = 17,
                                     .hop_limit = 63,
                                     .sgid = source,
                                     .dgid = destination}));
}

}  // namespace
}  // namespace verbena
