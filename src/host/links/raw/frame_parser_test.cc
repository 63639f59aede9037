// Tests that a raw link reads the frames that another writes, and that the device accepts valid
// frames only.
#include "host/links/raw/frame_parser.h"

#include <gtest/gtest.h>

#include "device/port/frame_check.h"
#include "host/links/raw/raw_frame_for_test.h"
#include "wire/roce/v1_packet.h"

namespace verbena::host {
namespace {

using test::RawFrame;

struct Addresses {
  GIDType type;
  GID from, to;
};
const std::array<Addresses, 4> kAll = {{
    {GIDType::kRoCEv2, test::kIPv4OfA, test::kIPv4OfB},
    {GIDType::kRoCEv2, *GID::parse("fe80::1"), *GID::parse("fe80::2")},
    {GIDType::kRoCEv1, test::kIPv4OfA, test::kIPv4OfB},
    {GIDType::kRoCEv1, *GID::parse("fe80::1"), *GID::parse("fe80::2")},
}};

TEST(FrameParserTest, GivesBackWhatWasWritten) {
  for (const Addresses& a : kAll) {
    for (const std::size_t size : {0u, 1u, 64u, 4096u}) {
      const RawFrame sent(a.type, a.from, a.to, QPN{0x4001}, size);
      const std::vector<u8> bytes = sent.bytes();
      FrameParser parser;
      parser.open(bytes, 0);
      IngressFrame got;
      ASSERT_TRUE(parser.poll(got));
      EXPECT_EQ(got.source, a.from);
      EXPECT_EQ(got.destination, a.to);
      EXPECT_EQ(got.type, a.type);
      EXPECT_EQ(got.traffic_class, 0x6a);
      EXPECT_EQ(got.hop_limit, 63);
      EXPECT_EQ(got.transport.size(), sent.frame.transport_size() + kICRCSize);
      EXPECT_TRUE(std::ranges::equal(got.transport.subspan(BTH::kSize, size), sent.payload));
      EXPECT_EQ(check_frame(got), FrameFault::kNone);
      EXPECT_FALSE(parser.poll(got));
    }
  }
}

// A sealed frame comes out of the parser as a PSP packet, which a cipher of the same key opens to
// the packet that was sent.
TEST(FrameParserTest, SealedFramesAreOpenedToWhatWasWritten) {
  const OpenSSL& ssl = **OpenSSL::load();
  for (const std::size_t size : {0u, 1u, 64u, 4096u}) {
    const RawFrame sent(GIDType::kRoCEv2, test::kIPv4OfA, test::kIPv4OfB, QPN{0x4001}, size);
    PSPSender sender(ssl, {.spi = 77, .key = {}}, 1, 0);
    std::vector<u8> bytes = sent.bytes({.sealer = &sender, .udp_port = kPSPPort});
    FrameParser in_clear;
    in_clear.open(bytes, 0);
    IngressFrame got;
    EXPECT_FALSE(in_clear.poll(got));
    FrameParser parser(kPSPPort);
    parser.open(bytes, 0);
    ASSERT_TRUE(parser.poll(got));
    EXPECT_EQ(got.transport.size(), sent.frame.transport_size() + kICRCSize + PSPSender::kOverhead);
    PSPCipher cipher(ssl, PSPKey{}, PSPCipher::Direction::kOpen);
    const std::span<u8> packet(const_cast<u8*>(got.transport.data()), got.transport.size());
    ASSERT_TRUE(cipher.open(packet, PSPHeader::kSize));
    const std::vector<u8> clear = sent.bytes();
    EXPECT_TRUE(std::ranges::equal(
        packet.subspan(PSPSender::kHeadersSize, sent.frame.transport_size() + kICRCSize),
        std::span(clear).last(sent.frame.transport_size() + kICRCSize)));
  }
}

// All 32 bits of the ICRC count: the Identification is known.
TEST(FrameParserTest, NoSingleBitErrorIsBelieved) {
  for (const Addresses& a : kAll) {
    std::vector<u8> bytes = RawFrame(a.type, a.from, a.to, QPN{0x4001}, 20).bytes();
    const std::size_t masked = bytes.size() - kICRCSize - 20 - BTH::kSize + 4;  // FECN and BECN
    for (std::size_t at = bytes.size() - kICRCSize - 20 - BTH::kSize; at < bytes.size(); ++at) {
      if (at == masked) continue;
      for (u8 bit = 1; bit != 0; bit = static_cast<u8>(bit << 1)) {
        bytes[at] ^= bit;
        FrameParser parser;
        parser.open(bytes, 0);
        IngressFrame got;
        ASSERT_TRUE(parser.poll(got));
        EXPECT_EQ(check_frame(got), FrameFault::kICRC) << at;
        bytes[at] ^= bit;
      }
    }
  }
}

// As Linux joins packets: one IP and one UDP header, the payloads behind each other. Their
// Identifications counted up, or all were the same.
TEST(FrameParserTest, JoinedPacketsComeOutOneByOne) {
  for (const u16 step : {u16{1}, u16{0}}) {
    constexpr u32 kSegment = 12 + 100 + 4;
    const RawFrame sent(GIDType::kRoCEv2, test::kIPv4OfA, test::kIPv4OfB, QPN{0x4001}, 100);
    std::vector<u8> payload;
    for (u16 place = 0; place < 3; ++place) {
      const std::vector<u8> one = sent.bytes();
      std::vector<u8> segment(one.end() - kSegment, one.end());
      store_icrc(icrc_of({.source = test::kIPv4OfA,
                          .destination = test::kIPv4OfB,
                          .udp_source_port = 0xc123,
                          .identification = static_cast<u16>(500 + step * place)},
                         std::span(segment).first(kSegment - kICRCSize)),
                 std::span(segment).last<kICRCSize>());
      payload.insert(payload.end(), segment.begin(), segment.end());
    }
    std::vector<u8> joined(kMaxEnvelopeSize);
    joined.resize(write_v2_headers({.source = test::kMACOfA, .destination = test::kMACOfB},
                                   {.source = test::kIPv4OfA,
                                    .destination = test::kIPv4OfB,
                                    .udp_source_port = 0xc123,
                                    .identification = 500},
                                   {}, payload.size() - kICRCSize, joined));
    joined.insert(joined.end(), payload.begin(), payload.end());
    FrameParser parser;
    parser.open(joined, kSegment);
    IngressFrame got;
    for (u32 place = 0; place < 3; ++place) {
      ASSERT_TRUE(parser.poll(got));
      EXPECT_EQ(got.transport.size(), kSegment);
      EXPECT_EQ(check_frame(got), FrameFault::kNone) << place;
      payload[place * kSegment + 50] ^= 1;
    }
    EXPECT_FALSE(parser.poll(got));
  }
}

// IEEE 802.1Q, 9.3: EtherType 0x8100, priority (of the DSCP's class selector) and VLAN, EtherType.
TEST(FrameWriterTest, WritesTheTagOfAVLAN) {
  std::array<u8, kMaxEnvelopeSize> plain{}, tagged{};
  const RoCEv2Envelope envelope{.source = test::kIPv4OfA, .destination = test::kIPv4OfB};
  const EthernetPath path{.source = test::kMACOfA, .destination = test::kMACOfB};
  const std::size_t size = write_v2_headers(path, envelope, {.dscp = 26}, 100, plain);
  EXPECT_EQ(
      write_v2_headers({path.source, path.destination, 100}, envelope, {.dscp = 26}, 100, tagged),
      size + VLANTag::kSize);
  const std::array<u8, 6> tag{0x81, 0x00, 0x60, 0x64, 0x08, 0x00};
  EXPECT_TRUE(std::ranges::equal(std::span(tagged).subspan(12, 6), tag));
  EXPECT_TRUE(std::ranges::equal(std::span(tagged).first(12), std::span(plain).first(12)));
  EXPECT_TRUE(std::ranges::equal(std::span(tagged).subspan(18, size - 14),
                                 std::span(plain).subspan(14, size - 14)));
}

TEST(FrameParserTest, WhatIsNoRoCEFrameGivesNothing) {
  const std::vector<u8> bytes =
      RawFrame(GIDType::kRoCEv2, test::kIPv4OfA, test::kIPv4OfB, QPN{0x4001}, 20).bytes();
  FrameParser parser;
  IngressFrame got;
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    parser.open(std::span(bytes).first(n), 0);
    EXPECT_FALSE(parser.poll(got)) << n;
  }
  std::vector<u8> other_port = bytes;
  other_port[14 + 20 + 3] ^= 1;
  parser.open(other_port, 0);
  EXPECT_FALSE(parser.poll(got));
}

}  // namespace
}  // namespace verbena::host
