#include "wire/roce/v2_packet.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/bytes.h"
#include "tests/support/golden.h"
#include "wire/eth/internet_checksum.h"
#include "wire/eth/ipv4.h"

namespace verbena {
namespace {

std::vector<u8> ip_packet(const char* file, std::size_t frame) {
  std::vector<u8> bytes = test::captured_frame(file, frame);
  bytes.erase(bytes.begin(), bytes.begin() + test::kIPAt);
  return bytes;
}

void fix_ipv4_checksum(std::vector<u8>& packet) {
  store_be16(packet.data() + 10, 0);
  InternetChecksum sum;
  sum.add(std::span(packet).first(IPv4Header::kSize));
  store_be16(packet.data() + 10, sum.finish());
}

// Frame 1 of rxe-rc-write.pcap with one byte changed and the IPv4 checksum right.
std::vector<u8> with(std::size_t at, u8 value) {
  std::vector<u8> packet = ip_packet("rxe-rc-write.pcap", 1);
  packet[at] = value;
  fix_ipv4_checksum(packet);
  return packet;
}

TEST(RoCEv2ViewTest, IPv4FromCapture) {
  // tests/captures/rxe-rc-write.pcap, frame 1, as tshark prints it: 10.77.0.3 to 10.77.0.2, DSCP 0,
  // TTL 64, Identification 0xe573, DF 1, ports 49476 and 4791, UDP length 40, checksum 0
  const std::vector<u8> packet = ip_packet("rxe-rc-write.pcap", 1);
  const std::optional<RoCEv2View> view = RoCEv2View::decode(packet);
  ASSERT_TRUE(view.has_value());
  EXPECT_EQ(view->envelope, (RoCEv2Envelope{.source = GID::from_ipv4(0x0a4d0003),
                                            .destination = GID::from_ipv4(0x0a4d0002),
                                            .udp_source_port = 49476,
                                            .identification = 0xe573}));
  EXPECT_EQ(view->masked, RoCEv2MaskedFields{.hop_limit = 64});
  EXPECT_EQ(view->transport.data(), packet.data() + 28);
  EXPECT_EQ(view->transport.size(), 28u);
  EXPECT_EQ(view->icrc, 0x048fa643u);
}

TEST(RoCEv2ViewTest, IPv6FromCapture) {
  // tests/captures/rxe-ipv6.pcap, frame 1, as tshark prints it: fe80::5054:ff:fe77:3 to
  // fe80::5054:ff:fe77:2, Hop Limit 64, ports 50634 and 4791, UDP length 88
  const std::vector<u8> packet = ip_packet("rxe-ipv6.pcap", 1);
  const std::optional<RoCEv2View> view = RoCEv2View::decode(packet);
  ASSERT_TRUE(view.has_value());
  EXPECT_EQ(view->envelope, (RoCEv2Envelope{.source = *GID::parse("fe80::5054:ff:fe77:3"),
                                            .destination = *GID::parse("fe80::5054:ff:fe77:2"),
                                            .udp_source_port = 50634}));
  EXPECT_EQ(view->transport.size(), 76u);
  EXPECT_EQ(view->icrc, 0x1a95d66bu);
}

TEST(RoCEv2ViewTest, EveryTruncationIsRefused) {
  for (const char* file : {"rxe-rc-write.pcap", "rxe-ipv6.pcap"}) {
    const std::vector<u8> packet = ip_packet(file, 1);
    for (std::size_t n = 0; n < packet.size(); ++n)
      EXPECT_FALSE(RoCEv2View::decode(std::span(packet).first(n)).has_value()) << file << ' ' << n;
  }
}

TEST(RoCEv2ViewTest, PaddingOfTheLinkIsIgnored) {
  for (const char* file : {"rxe-rc-write.pcap", "rxe-ipv6.pcap"}) {
    std::vector<u8> packet = ip_packet(file, 1);
    const std::size_t size = RoCEv2View::decode(packet)->transport.size();
    packet.resize(packet.size() + 6);
    ASSERT_TRUE(RoCEv2View::decode(packet).has_value());
    EXPECT_EQ(RoCEv2View::decode(packet)->transport.size(), size);
  }
}

TEST(RoCEv2ViewTest, WhatIsNotRoCEv2IsRefused) {
  EXPECT_TRUE(RoCEv2View::decode(with(1, 0x6b)).has_value());
  EXPECT_FALSE(RoCEv2View::decode(with(6, 0x60)).has_value()) << "a fragment";
  EXPECT_FALSE(RoCEv2View::decode(with(9, 6)).has_value()) << "TCP";
  EXPECT_FALSE(RoCEv2View::decode(with(23, 0xb8)).has_value()) << "another port";
  EXPECT_FALSE(RoCEv2View::decode(with(25, 39)).has_value()) << "UDP length below IP's";
  EXPECT_FALSE(RoCEv2View::decode(with(25, 41)).has_value()) << "UDP length above IP's";
  EXPECT_FALSE(RoCEv2View::decode(with(0, 0x55)).has_value()) << "IP version 5";
}

TEST(RoCEv2ViewTest, TooShortForABTHIsRefused) {
  std::vector<u8> packet = ip_packet("rxe-rc-write.pcap", 1);
  for (u8 transport = 0; transport < 20; ++transport) {
    packet[3] = static_cast<u8>(32 + transport);
    packet[25] = static_cast<u8>(12 + transport);
    fix_ipv4_checksum(packet);
    EXPECT_EQ(RoCEv2View::decode(packet).has_value(), transport >= 12) << int{transport};
  }
}

TEST(RoCEv2ViewTest, IPv4MappedAddressesInIPv6AreRefused) {
  std::vector<u8> packet = ip_packet("rxe-ipv6.pcap", 1);
  const GID mapped = GID::from_ipv4(0x0a4d0003);
  std::ranges::copy(mapped.bytes, packet.begin() + 8);
  EXPECT_FALSE(RoCEv2View::decode(packet).has_value());
}

TEST(RoCEv2EnvelopeTest, EncodesEveryField) {
  const RoCEv2MaskedFields masked = {
      .dscp = 26, .ecn = ECN::kECT0, .hop_limit = 9, .flow_label = 0, .udp_checksum = 0x1234};
  RoCEv2Envelope envelope = {.source = GID::from_ipv4(0x01020304),
                             .destination = GID::from_ipv4(0x05060708),
                             .udp_source_port = 0xc001,
                             .identification = 0xabcd,
                             .dont_fragment = false};
  std::vector<u8> packet(envelope_size(envelope) + BTH::kSize + kICRCSize);
  EXPECT_EQ(envelope_size(envelope), 28u);
  encode_envelope(envelope, masked, BTH::kSize, packet);
  EXPECT_EQ(RoCEv2View::decode(packet)->envelope, envelope);
  EXPECT_EQ(RoCEv2View::decode(packet)->masked, masked);
}

TEST(ReceiveGRHTest, IPv4LiesInTheLast20Bytes) {
  const std::vector<u8> packet = ip_packet("rxe-ud.pcap", 1);
  const RoCEv2View view = *RoCEv2View::decode(packet);
  std::array<u8, GRH::kSize> grh;
  grh.fill(0xa5);
  encode_receive_grh(view.envelope, view.masked, view.transport.size(), grh);
  EXPECT_TRUE(std::ranges::all_of(std::span(grh).first(20), [](u8 b) { return b == 0; }));
  EXPECT_TRUE(std::ranges::equal(std::span(grh).last(20), std::span(packet).first(20)));
}

TEST(ReceiveGRHTest, IPv6IsTheHeaderItself) {
  const std::vector<u8> packet = ip_packet("rxe-ipv6.pcap", 1);
  const RoCEv2View view = *RoCEv2View::decode(packet);
  std::array<u8, GRH::kSize> grh{};
  encode_receive_grh(view.envelope, view.masked, view.transport.size(), grh);
  EXPECT_TRUE(std::ranges::equal(grh, std::span(packet).first(40)));
}

}  // namespace
}  // namespace verbena
