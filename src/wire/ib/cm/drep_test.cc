#include "wire/ib/cm/drep.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace verbena::cm {
namespace {

TEST(DREPTest, FromCapture) {
  // tests/captures/rxe-cm-rping.pcap, frame 29, as tshark prints it: Local Communication ID
  // 0x86d97925, Remote Communication ID 0x60b59dc3, private data 0
  test::expect_golden<DREP>(
      {"rxe-cm-rping.pcap", 29, test::kCMMessageAt},
      {0x86, 0xd9, 0x79, 0x25, 0x60, 0xb5, 0x9d, 0xc3},
      {.local_comm_id = CommId{0x86d97925}, .remote_comm_id = CommId{0x60b59dc3}});
}

TEST(DREPTest, EveryFieldFull) {
  std::array<u8, DREP::kSize> bytes = {0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08};
  DREP expected{.local_comm_id = CommId{0x01020304}, .remote_comm_id = CommId{0x05060708}};
  std::fill(bytes.begin() + 8, bytes.end(), u8{0x77});
  expected.private_data.fill(0x77);
  test::expect_both_ways<DREP>(bytes, expected);
}

}  // namespace
}  // namespace verbena::cm
