#include "wire/roce/icrc.h"

#include <gtest/gtest.h>
#include <isa-l/crc.h>
#include <zlib.h>

#include <algorithm>
#include <vector>

#include "base/prng.h"
#include "tests/support/pcap.h"

namespace verbena {
namespace {

// CRC-32 bit by bit, as IEEE 802.3, 3.2.9 defines it: shares nothing with the code under test.
u32 slow_crc32(std::span<const u8> bytes) {
  u32 crc = 0xffffffff;
  for (const u8 byte : bytes) {
    crc ^= byte;
    for (int i = 0; i < 8; ++i) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320 : 0);
  }
  return ~crc;
}

std::vector<u8> random_bytes(PRNG& prng, std::size_t size) {
  std::vector<u8> bytes(size);
  std::ranges::generate(bytes, [&prng] { return static_cast<u8>(prng.next()); });
  return bytes;
}

void append(std::vector<u8>& to, std::span<const u8> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

std::vector<u8> masked_transport(std::span<const u8> transport) {
  std::vector<u8> bytes(transport.begin(), transport.end());
  bytes[4] = 0xff;
  return bytes;
}

// The processor determines which of the two is used: they must agree, in pieces too.
TEST(ICRCTest, BothLibrariesComputeTheSame) {
  PRNG prng(7);
  for (std::size_t size = 0; size < 300; ++size) {
    const std::vector<u8> bytes = random_bytes(prng, size);
    const std::size_t cut = size / 3;
    const u8* const rest = bytes.data() + cut;
    EXPECT_EQ(crc32_gzip_refl(crc32_gzip_refl(0, bytes.data(), cut), rest, size - cut),
              slow_crc32(bytes));
    EXPECT_EQ(crc32_z(crc32_z(0, bytes.data(), cut), rest, size - cut), slow_crc32(bytes));
  }
}

TEST(ICRCTest, OfAnIPv4Frame) {
  // tests/captures/rxe-rc-write.pcap, frame 1: 10.77.0.3 to 10.77.0.2, Identification 0xe573,
  // ports 49476 and 4791, Invariant CRC bytes 43 a6 8f 04
  const std::vector<u8> frame = test::captured_frame("rxe-rc-write.pcap", 1);
  const RoCEv2Envelope envelope = {.source = GID::from_ipv4(0x0a4d0003),
                                   .destination = GID::from_ipv4(0x0a4d0002),
                                   .udp_source_port = 49476,
                                   .identification = 0xe573};
  EXPECT_EQ(icrc_of(envelope, std::span(frame).subspan(42, 28)), 0x048fa643u);
}

TEST(ICRCTest, OfAnIPv6Frame) {
  // tests/captures/rxe-ipv6.pcap, frame 1: fe80::5054:ff:fe77:3 to fe80::5054:ff:fe77:2, ports
  // 50634 and 4791, Invariant CRC bytes 6b d6 95 1a
  const std::vector<u8> frame = test::captured_frame("rxe-ipv6.pcap", 1);
  const RoCEv2Envelope envelope = {.source = *GID::parse("fe80::5054:ff:fe77:3"),
                                   .destination = *GID::parse("fe80::5054:ff:fe77:2"),
                                   .udp_source_port = 50634};
  EXPECT_EQ(icrc_of(envelope, std::span(frame).subspan(62, 76)), 0x1a95d66bu);
}

TEST(ICRCTest, TheWireBytesAreLittleEndian) {
  std::array<u8, kICRCSize> bytes{};
  store_icrc(0x048fa643, bytes);
  EXPECT_EQ(bytes, (std::array<u8, 4>{0x43, 0xa6, 0x8f, 0x04}));
  EXPECT_EQ(load_icrc(bytes), 0x048fa643u);
}

TEST(ICRCTest, HowItIsFedDoesNotMatter) {
  PRNG prng(1);
  for (const GID& gid : {GID::from_ipv4(0x0a000001), *GID::parse("2001:db8::1")}) {
    for (int i = 0; i < 2000; ++i) {
      const std::vector<u8> bytes = random_bytes(prng, prng.in(12, 400));
      const RoCEv2Envelope envelope = {.source = gid,
                                       .destination = gid,
                                       .udp_source_port = static_cast<u16>(prng.next()),
                                       .identification = static_cast<u16>(prng.next())};
      const std::size_t first = prng.in(12, bytes.size());
      const std::size_t second = prng.in(first, bytes.size());
      EnvelopeCRC flow;
      ICRC icrc(flow.of(envelope, bytes.size()));
      icrc.headers(std::span(bytes).first(first));
      icrc.update(std::span(bytes).subspan(first, second - first));
      icrc.update(std::span(bytes).subspan(second));
      ASSERT_EQ(icrc.finish(), icrc_of(envelope, bytes));
    }
  }
}

// Packets that differ from the one before in one thing, and in none.
TEST(ICRCTest, WhatIsKeptOfAFlowDoesNotMatter) {
  PRNG prng(5);
  EnvelopeCRC flow;
  RoCEv2Envelope envelope;
  std::vector<u8> bytes(40);
  const auto change = [&](u64 what) {
    switch (what) {
      case 0: bytes = random_bytes(prng, prng.in(12, 400)); return;
      case 1: envelope.identification = static_cast<u16>(prng.next()); return;
      case 2: envelope.udp_source_port = static_cast<u16>(prng.next()); return;
      case 3: envelope.udp_destination_port = static_cast<u16>(prng.next()); return;
      case 4: envelope.dont_fragment = !envelope.dont_fragment; return;
      case 5: envelope.source = GID::from_ipv4(static_cast<u32>(prng.next())); return;
      case 6: envelope.destination = GID::from_ipv4(static_cast<u32>(prng.next())); return;
      case 7: envelope.source = envelope.destination = *GID::parse("2001:db8::1"); return;
      case 8: envelope.source = envelope.destination = *GID::parse("2001:db8::2"); return;
      default: return;
    }
  };
  for (int i = 0; i < 5000; ++i) {
    change(prng.below(10));
    ASSERT_EQ(icrc_of(flow, envelope, bytes), icrc_of(envelope, bytes)) << i;
  }
}

TEST(ICRCTest, EqualsTheDefinitionOnIPv4) {
  PRNG prng(2);
  for (int i = 0; i < 500; ++i) {
    const std::vector<u8> transport = random_bytes(prng, prng.in(12, 4200));
    const u16 port = static_cast<u16>(prng.next());
    const u16 id = static_cast<u16>(prng.next());
    const std::size_t udp = transport.size() + 12, ip = udp + 20;
    const auto high = [](std::size_t v) { return static_cast<u8>(v >> 8); };
    const auto low = [](std::size_t v) { return static_cast<u8>(v); };
    std::vector<u8> bytes(8, 0xff);
    append(bytes,
           std::array<u8, 28>{0x45,      0xff, high(ip), low(ip),   high(id), low(id), 0x40,
                              0x00,      0xff, 0x11,     0xff,      0xff,     1,       2,
                              3,         4,    5,        6,         7,        8,       high(port),
                              low(port), 0x12, 0xb7,     high(udp), low(udp), 0xff,    0xff});
    append(bytes, masked_transport(transport));
    const RoCEv2Envelope envelope = {.source = GID::from_ipv4(0x01020304),
                                     .destination = GID::from_ipv4(0x05060708),
                                     .udp_source_port = port,
                                     .identification = id};
    ASSERT_EQ(icrc_of(envelope, transport), slow_crc32(bytes));
  }
}

TEST(ICRCTest, RoCEv1EqualsTheDefinition) {
  PRNG prng(3);
  for (int i = 0; i < 500; ++i) {
    const std::vector<u8> transport = random_bytes(prng, prng.in(12, 4200));
    GRH grh = {.traffic_class = static_cast<u8>(prng.next()),
               .flow_label = static_cast<u32>(prng.below(1u << 20)),
               .payload_length = static_cast<u16>(transport.size() + kICRCSize),
               .hop_limit = static_cast<u8>(prng.next())};
    std::ranges::copy(random_bytes(prng, 16), grh.sgid.bytes.begin());
    std::ranges::copy(random_bytes(prng, 16), grh.dgid.bytes.begin());
    std::array<u8, GRH::kSize> header{};
    grh.encode(header);
    header[0] |= 0x0f;                             // traffic class, upper half
    std::fill_n(header.begin() + 1, 3, u8{0xff});  // its lower half; flow label
    header[7] = 0xff;                              // hop limit
    std::vector<u8> bytes(8, 0xff);
    append(bytes, header);
    append(bytes, masked_transport(transport));
    ASSERT_EQ(icrc_of_v1(grh, transport), slow_crc32(bytes));
  }
}

TEST(ICRCTest, LongestTransport) {
  const std::vector<u8> transport(kMaxTransportSize, 0x33);
  RoCEv2Envelope envelope = {.source = GID::from_ipv4(1), .destination = GID::from_ipv4(2)};
  const u32 computed = icrc_of(envelope, transport);
  envelope.identification = 0xabcd;
  EXPECT_EQ(solve_identification(computed, icrc_of(envelope, transport), transport.size()), 0xabcd);
}

TEST(SolveIdentificationTest, FindsEveryIdentification) {
  const std::vector<u8> transport(12 + 16 + 64, 0x5c);
  RoCEv2Envelope envelope = {.source = GID::from_ipv4(0x0a4d0003),
                             .destination = GID::from_ipv4(0x0a4d0002),
                             .udp_source_port = 49476};
  const u32 computed = icrc_of(envelope, transport);
  for (u32 id = 0; id <= 0xffff; ++id) {
    envelope.identification = static_cast<u16>(id);
    ASSERT_EQ(solve_identification(computed, icrc_of(envelope, transport), transport.size()), id);
  }
}

TEST(SolveIdentificationTest, AtEverySize) {
  PRNG prng(4);
  RoCEv2Envelope envelope = {.source = GID::from_ipv4(0x0a4d0003),
                             .destination = GID::from_ipv4(0x0a4d0002)};
  const std::vector<u8> bytes = random_bytes(prng, 9000);
  for (std::size_t size = 12; size <= bytes.size(); ++size) {
    const std::span<const u8> transport = std::span(bytes).first(size);
    envelope.identification = 0;
    const u32 computed = icrc_of(envelope, transport);
    envelope.identification = static_cast<u16>(prng.next());
    ASSERT_EQ(solve_identification(computed, icrc_of(envelope, transport), size),
              envelope.identification);
  }
}

TEST(SolveIdentificationTest, PassesARandomICRCOnceIn65536) {
  PRNG prng(5);
  int passed = 0;
  for (int i = 0; i < 1 << 20; ++i)
    if (solve_identification(static_cast<u32>(prng.next()), static_cast<u32>(prng.next()), 1068))
      ++passed;
  EXPECT_NEAR(passed, 16, 14);
}

TEST(SolveIdentificationTest, RefusesEverySingleFlippedBit) {
  PRNG prng(6);
  std::vector<u8> transport = random_bytes(prng, 12 + 1024);
  transport[4] = 0;
  const RoCEv2Envelope envelope = {.source = GID::from_ipv4(1), .destination = GID::from_ipv4(2)};
  const u32 sent = icrc_of(envelope, transport);
  for (std::size_t bit = 0; bit < transport.size() * 8; ++bit) {
    if (bit / 8 == 4) continue;  // masked
    transport[bit / 8] ^= static_cast<u8>(1u << (bit % 8));
    EXPECT_FALSE(solve_identification(icrc_of(envelope, transport), sent, transport.size())) << bit;
    transport[bit / 8] ^= static_cast<u8>(1u << (bit % 8));
  }
}

TEST(ICRCDeathTest, MisuseIsACrash) {
  const std::vector<u8> transport(kMaxTransportSize + 1);
  EXPECT_DEATH(static_cast<void>(icrc_of({}, transport)), "kMaxTransportSize");
  EXPECT_DEATH(static_cast<void>(icrc_of({}, std::span(transport).first(11))), "kSize");
}

}  // namespace
}  // namespace verbena
