#include "wire/ib/cm/ip_cm_header.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace verbena::cm {
namespace {

constexpr std::size_t kREQPrivateDataAt = test::kCMMessageAt + 140;

TEST(IPCMHeaderTest, FromCapture) {
  // tests/captures/rxe-cm-rping.pcap, frame 1, as tshark prints it: IP CM Major Version 0, Minor
  // Version 0, IP Version 4, Source Port 0xc99b, Source IP 10.77.0.3, Destination IP 10.77.0.2
  test::expect_golden<IPCMHeader>(
      {"rxe-cm-rping.pcap", 1, kREQPrivateDataAt},
      {0x00, 0x40, 0xc9, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  10, 77,
       0,    3,    0,    0,    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 77, 0,  2},
      {.source_port = 0xc99b,
       .source = *GID::parse("10.77.0.3"),
       .destination = *GID::parse("10.77.0.2")});
}

TEST(IPCMHeaderTest, IPv6) {
  std::array<u8, IPCMHeader::kSize> bytes = {0x05, 0x60, 0x12, 0x34};
  std::fill_n(bytes.begin() + 4, 16, u8{1});
  std::fill_n(bytes.begin() + 20, 16, u8{2});
  test::expect_both_ways<IPCMHeader>(
      bytes, {.minor_version = 5,
              .ip_version = IPVersion::k6,
              .source_port = 0x1234,
              .source = *GID::parse("101:101:101:101:101:101:101:101"),
              .destination = *GID::parse("202:202:202:202:202:202:202:202")});
}

TEST(IPCMHeaderTest, OtherVersionsAreRefused) {
  std::array<u8, IPCMHeader::kSize> bytes{};
  for (int version = 0; version < 16; ++version) {
    bytes[0] = 0;
    bytes[1] = static_cast<u8>(version << 4);
    EXPECT_EQ(IPCMHeader::decode(bytes).has_value(), version == 4 || version == 6) << version;
    bytes[0] = static_cast<u8>(version << 4);  // now the major version
    bytes[1] = 0x40;
    EXPECT_EQ(IPCMHeader::decode(bytes).has_value(), version == 0) << version;
  }
}

}  // namespace
}  // namespace verbena::cm
