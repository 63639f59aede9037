#include "wire/ib/path_record.h"

#include <gtest/gtest.h>

namespace verbena {
namespace {

// IBTA Vol 1, 15.2.5.16, component by component.
TEST(PathRecordTest, ComponentsLieWhereTheStandardHasThem) {
  PathRecord record{.dlid = 0x0102,
                    .slid = 0x0304,
                    .numb_path = 3,
                    .p_key = 0x8001,
                    .sl = 7,
                    .mtu = 5,
                    .rate = 16,
                    .packet_lifetime = 18};
  record.dgid.bytes[0] = 0xfe;
  record.sgid.bytes[15] = 0x22;
  std::array<u8, PathRecord::kSize> bytes{};
  record.encode(bytes);
  std::array<u8, PathRecord::kSize> expected{};
  expected[8] = 0xfe;
  expected[39] = 0x22;
  const std::array<u8, 17> rest = {0x01, 0x02, 0x03, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00,
                                   0x83, 0x80, 0x01, 0x00, 0x07, 0x85, 0x90, 0x92};
  std::ranges::copy(rest, expected.begin() + 40);
  EXPECT_EQ(bytes, expected);
  EXPECT_EQ(PathRecord::decode(bytes), record);
  for (std::size_t n = 0; n < bytes.size(); ++n)
    EXPECT_FALSE(PathRecord::decode(std::span(bytes).first(n))) << n;
}

}  // namespace
}  // namespace verbena
