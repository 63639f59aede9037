#include "wire/eth/tcp.h"

#include <gtest/gtest.h>

#include "tests/support/pcap.h"
#include "wire/eth/ethernet.h"
#include "wire/eth/ipv4.h"

namespace verbena {
namespace {

TEST(TCPHeaderTest, FromCapture) {
  // tests/captures/siw-ops.pcap: every segment, with the checksum that Linux has put there.
  std::size_t segments = 0;
  for (const test::CapturedFrame& frame : test::read_capture("siw-ops.pcap")) {
    const std::span<const u8> packet = std::span(frame.bytes).subspan(EthernetHeader::kSize);
    const std::optional<IPv4Header> ip = IPv4Header::decode(packet);
    ASSERT_TRUE(ip.has_value());
    const std::span<const u8> bytes =
        packet.subspan(IPv4Header::kSize, ip->total_length - IPv4Header::kSize);
    const std::optional<TCPHeader> tcp = TCPHeader::decode(bytes);
    ASSERT_TRUE(tcp.has_value());
    std::array<u8, TCPHeader::kSize> again{};
    tcp->encode(again);
    EXPECT_TRUE(std::ranges::equal(again, bytes.first(TCPHeader::kSize)));
    for (std::size_t n = 0; n < TCPHeader::kSize; ++n)
      EXPECT_FALSE(TCPHeader::decode(bytes.first(n)).has_value()) << n;
    EXPECT_EQ(tcp->flags & (TCPHeader::kURG | TCPHeader::kRST), 0);
    ++segments;
  }
  EXPECT_EQ(segments, 30u);
}

// A right checksum makes the sum 0, RFC 1071.
TEST(TCPHeaderTest, Checksum) {
  TCPHeader header{.source_port = 0x8000,
                   .destination_port = 0x1389,
                   .sequence = 1,
                   .flags = TCPHeader::kACK,
                   .window = 0xffff};
  std::array<u8, TCPHeader::kSize> bytes{};
  header.encode(bytes);
  const u16 checksum = tcp_checksum(0x0a000001, 0x0a000002, bytes);
  header.checksum = checksum;
  header.encode(bytes);
  EXPECT_EQ(tcp_checksum(0x0a000001, 0x0a000002, bytes), 0);
  bytes[4] ^= 1;
  EXPECT_NE(tcp_checksum(0x0a000001, 0x0a000002, bytes), 0);
}

}  // namespace
}  // namespace verbena
