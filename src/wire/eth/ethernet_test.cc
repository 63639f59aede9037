#include "wire/eth/ethernet.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace verbena {
namespace {

TEST(EthernetHeaderTest, FromCapture) {
  // tests/captures/rxe-rc-write.pcap, frame 1, as tshark prints it: Destination 52:54:00:77:00:02,
  // Source 52:54:00:77:00:03, Type IPv4 (0x0800)
  test::expect_golden<EthernetHeader>(
      {"rxe-rc-write.pcap", 1, 0},
      {0x52, 0x54, 0x00, 0x77, 0x00, 0x02, 0x52, 0x54, 0x00, 0x77, 0x00, 0x03, 0x08, 0x00},
      {.destination = {{0x52, 0x54, 0x00, 0x77, 0x00, 0x02}},
       .source = {{0x52, 0x54, 0x00, 0x77, 0x00, 0x03}},
       .ether_type = EtherType::kIPv4});
}

TEST(EthernetHeaderTest, UnknownTypesAreKept) {
  std::array<u8, EthernetHeader::kSize> bytes{};
  bytes[12] = 0x12;
  bytes[13] = 0x34;
  test::expect_both_ways<EthernetHeader>(bytes, {.ether_type = EtherType{0x1234}});
}

TEST(VLANTagTest, EveryFieldBothWays) {
  test::expect_both_ways<VLANTag>(
      {0x60, 0x64, 0x89, 0x15}, {.priority = 3, .vlan_id = 100, .ether_type = EtherType::kRoCEv1});
  test::expect_both_ways<VLANTag>(
      {0xff, 0xff, 0x86, 0xdd},
      {.priority = 7, .drop_eligible = true, .vlan_id = 4095, .ether_type = EtherType::kIPv6});
  test::expect_both_ways<VLANTag>({0x10, 0x00, 0x08, 0x00}, {.drop_eligible = true});
}

TEST(VLANTagDeathTest, FieldsWiderThanTheWireAreACrash) {
  std::array<u8, VLANTag::kSize> bytes{};
  EXPECT_DEATH(VLANTag{.priority = 8}.encode(bytes), "priority");
  EXPECT_DEATH(VLANTag{.vlan_id = 4096}.encode(bytes), "vlan_id");
}

TEST(MACTest, Multicast) {
  EXPECT_TRUE((MAC{{0x01, 0x80, 0xc2, 0x00, 0x00, 0x01}}.is_multicast()));
  EXPECT_FALSE((MAC{{0x52, 0x54, 0x00, 0x77, 0x00, 0x02}}.is_multicast()));
}

}  // namespace
}  // namespace verbena
