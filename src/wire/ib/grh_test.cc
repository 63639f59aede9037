#include "wire/ib/grh.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace verbena {
namespace {

TEST(GRHTest, AnIPv6HeaderFromCapture) {
  // tests/captures/rxe-ipv6.pcap, frame 1, as tshark prints its IPv6 header, which a GRH shares:
  // Version 6, Traffic Class 0, Flow Label 0, Payload Length 88, Next Header 17, Hop Limit 64,
  // fe80::5054:ff:fe77:3 to fe80::5054:ff:fe77:2
  test::expect_golden<GRH>({"rxe-ipv6.pcap", 1, test::kIPAt},
                           {0x60, 0x00, 0x00, 0x00, 0x00, 0x58, 0x11, 0x40,  //
                            0xfe, 0x80, 0,    0,    0,    0,    0,    0,
                            0x50, 0x54, 0x00, 0xff, 0xfe, 0x77, 0x00, 0x03,  //
                            0xfe, 0x80, 0,    0,    0,    0,    0,    0,
                            0x50, 0x54, 0x00, 0xff, 0xfe, 0x77, 0x00, 0x02},
                           {.payload_length = 88,
                            .next_header = 17,
                            .hop_limit = 64,
                            .sgid = *GID::parse("fe80::5054:ff:fe77:3"),
                            .dgid = *GID::parse("fe80::5054:ff:fe77:2")});
}

TEST(GRHTest, EveryFieldFull) {
  // As tshark prints these bytes behind EtherType 0x8915: IP Version 6, Traffic Class 171, Flow
  // Label 846319, Payload Length 4660, Next Header 27, Hop Limit 86, 101:101.. to 202:202..
  std::array<u8, GRH::kSize> bytes = {0x6a, 0xbc, 0xe9, 0xef, 0x12, 0x34, 0x1b, 0x56};
  std::fill_n(bytes.begin() + 8, 16, u8{1});
  std::fill_n(bytes.begin() + 24, 16, u8{2});
  test::expect_both_ways<GRH>(bytes, {.traffic_class = 0xab,
                                      .flow_label = 0xce9ef,
                                      .payload_length = 0x1234,
                                      .next_header = kNextHeaderIBA,
                                      .hop_limit = 0x56,
                                      .sgid = *GID::parse("101:101:101:101:101:101:101:101"),
                                      .dgid = *GID::parse("202:202:202:202:202:202:202:202")});
}

TEST(GRHTest, OtherVersionsAreRefused) {
  std::array<u8, GRH::kSize> bytes{};
  for (int version = 0; version < 16; ++version) {
    bytes[0] = static_cast<u8>(version << 4);
    EXPECT_EQ(GRH::decode(bytes).has_value(), version == 6) << version;
  }
}

}  // namespace
}  // namespace verbena
