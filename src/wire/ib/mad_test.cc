#include "wire/ib/mad.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace verbena {
namespace {

TEST(MADHeaderTest, FromCapture) {
  // tests/captures/rxe-cm-rping.pcap, frame 1, as tshark prints it: Base Version 0x01, Management
  // Class 0x07, Class Version 0x02, Method Send() (0x03), Status 0x0000, Class Specific 0x0000,
  // Transaction ID 0x00000002c39db560, Attribute ID 0x0010, Attribute Modifier 0x00000000
  test::expect_golden<MADHeader>({"rxe-cm-rping.pcap", 1, test::kMADAt},
                                 {0x01, 0x07, 0x02, 0x03, 0x00, 0x00, 0x00, 0x00,  //
                                  0x00, 0x00, 0x00, 0x02, 0xc3, 0x9d, 0xb5, 0x60,  //
                                  0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00},
                                 {.mgmt_class = MgmtClass::kComMgt,
                                  .class_version = 2,
                                  .method = MADMethod::kSend,
                                  .transaction_id = 0x2c39db560,
                                  .attribute_id = 0x10});
}

TEST(MADHeaderTest, EveryFieldFull) {
  test::expect_both_ways<MADHeader>(
      {0x01, 0x81, 0x12, 0x81, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x01,
       0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0x00, 0x00, 0xfe, 0xdc, 0xba, 0x98},
      {.mgmt_class = MgmtClass::kSubnDirectedRoute,
       .class_version = 0x12,
       .method = MADMethod::kGetResp,
       .status = 0x2345,
       .class_specific = 0x6789,
       .transaction_id = 0xabcdef0123456789,
       .attribute_id = 0xabcd,
       .attribute_modifier = 0xfedcba98});
}

TEST(MADHeaderTest, OtherBaseVersionsAreRefused) {
  std::array<u8, MADHeader::kSize> bytes{};
  for (int version = 0; version < 256; ++version) {
    bytes[0] = static_cast<u8>(version);
    EXPECT_EQ(MADHeader::decode(bytes).has_value(), version == 1) << version;
  }
}

}  // namespace
}  // namespace verbena
