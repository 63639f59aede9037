#include "wire/ib/mc_member_record.h"

#include <gtest/gtest.h>

namespace verbena {
namespace {

// IBTA Vol 1, 15.2.5.17, component by component.
TEST(MCMemberRecordTest, ComponentsLieWhereTheStandardHasThem) {
  MCMemberRecord record{.q_key = 0x01020304,
                        .mlid = 0xc001,
                        .mtu = 0x84,
                        .traffic_class = 0x05,
                        .p_key = 0xffff,
                        .rate = 0x83,
                        .packet_lifetime = 0x92,
                        .sl = 0xa,
                        .flow_label = 0xbcdef,
                        .hop_limit = 0x40,
                        .scope = 2,
                        .join_state = 1};
  record.mgid.bytes[0] = 0xff;
  record.port_gid.bytes[15] = 0x11;
  std::array<u8, MCMemberRecord::kSize> bytes{};
  record.encode(bytes);
  std::array<u8, MCMemberRecord::kSize> expected{};
  expected[0] = 0xff;
  expected[31] = 0x11;
  const std::array<u8, 17> rest = {0x01, 0x02, 0x03, 0x04, 0xc0, 0x01, 0x84, 0x05, 0xff,
                                   0xff, 0x83, 0x92, 0xab, 0xcd, 0xef, 0x40, 0x21};
  std::ranges::copy(rest, expected.begin() + 32);
  EXPECT_EQ(bytes, expected);
  EXPECT_EQ(MCMemberRecord::decode(bytes), record);
  for (std::size_t n = 0; n < bytes.size(); ++n)
    EXPECT_FALSE(MCMemberRecord::decode(std::span(bytes).first(n))) << n;
}

}  // namespace
}  // namespace verbena
