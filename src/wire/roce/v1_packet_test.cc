#include "wire/roce/v1_packet.h"

#include <gtest/gtest.h>

#include <vector>

#include "wire/roce/icrc.h"

namespace verbena {
namespace {

// An acknowledgement between the IPv4-mapped GIDs 10.77.0.1 and 10.77.0.2: GRH, BTH, AETH, ICRC. As
// tshark 4.0 shows these bytes behind EtherType 0x8915: IPVer 6, TClass 0x68, FlowLabel 0x00012,
// PayLen 20, NxtHdr 27, HopLmt 64, SGID ::ffff:10.77.0.1, DGID ::ffff:10.77.0.2; OpCode RC
// Acknowledge (17), MigReq 1, P_Key 65535, DestQP 0x004001, PSN 0x000102; AETH syndrome 0x1f,
// MSN 3.
constexpr std::array<u8, 60> kBytes = {
    0x66, 0x80, 0x00, 0x12, 0x00, 0x14, 0x1b, 0x40,                                        // GRH
    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0xff, 0xff, 10, 77, 0, 1,  // SGID
    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0xff, 0xff, 10, 77, 0, 2,  // DGID
    0x11, 0x40, 0xff, 0xff, 0x00, 0x00, 0x40, 0x01, 0x00, 0x00, 0x01, 0x02,                // BTH
    0x1f, 0x00, 0x00, 0x03,                                                                // AETH
    0xa1, 0xb2, 0xc3, 0xd4};  // ICRC: any

TEST(RoCEv1ViewTest, EveryField) {
  const std::optional<RoCEv1View> view = RoCEv1View::decode(kBytes);
  ASSERT_TRUE(view.has_value());
  EXPECT_EQ(view->grh, (GRH{.traffic_class = 0x68,
                            .flow_label = 0x12,
                            .payload_length = 20,
                            .hop_limit = 64,
                            .sgid = GID::from_ipv4(0x0a4d0001),
                            .dgid = GID::from_ipv4(0x0a4d0002)}));
  EXPECT_TRUE(std::ranges::equal(view->transport, std::span(kBytes).subspan(40, 16)));
  EXPECT_EQ(view->icrc, 0xd4c3b2a1);
}

TEST(RoCEv1ViewTest, TruncatedIsRefusedAndPaddingIgnored) {
  for (std::size_t n = 0; n < kBytes.size(); ++n)
    EXPECT_FALSE(RoCEv1View::decode(std::span(kBytes).first(n)).has_value()) << n;
  std::vector<u8> padded(kBytes.begin(), kBytes.end());
  padded.resize(100);
  ASSERT_TRUE(RoCEv1View::decode(padded).has_value());
  EXPECT_EQ(RoCEv1View::decode(padded)->transport.size(), 16u);
}

TEST(RoCEv1ViewTest, WhatIsNoRoCEv1) {
  const auto with = [](std::size_t at, u8 value) {
    std::array<u8, kBytes.size()> bytes = kBytes;
    bytes[at] = value;
    return RoCEv1View::decode(bytes).has_value();
  };
  EXPECT_TRUE(with(0, 0x66));
  EXPECT_FALSE(with(0, 0x46));    // another IPVer
  EXPECT_FALSE(with(6, 17));      // another next header: UDP
  EXPECT_FALSE(with(5, 3));       // no room for an ICRC
  EXPECT_FALSE(with(4, 1));       // longer than it is
  EXPECT_FALSE(with(8 + 10, 0));  // SGID no IPv4 address, DGID one
}

}  // namespace
}  // namespace verbena
