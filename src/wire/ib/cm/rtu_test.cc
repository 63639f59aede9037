#include "wire/ib/cm/rtu.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace verbena::cm {
namespace {

TEST(RTUTest, FromCapture) {
  // tests/captures/rxe-cm-rping.pcap, frame 3, as tshark prints it: Local Communication ID
  // 0x60b59dc3, Remote Communication ID 0x86d97925, private data 0
  test::expect_golden<RTU>(
      {"rxe-cm-rping.pcap", 3, test::kCMMessageAt},
      {0x60, 0xb5, 0x9d, 0xc3, 0x86, 0xd9, 0x79, 0x25},
      {.local_comm_id = CommId{0x60b59dc3}, .remote_comm_id = CommId{0x86d97925}});
}

TEST(RTUTest, EveryFieldFull) {
  std::array<u8, RTU::kSize> bytes = {0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08};
  RTU expected{.local_comm_id = CommId{0x01020304}, .remote_comm_id = CommId{0x05060708}};
  std::fill(bytes.begin() + 8, bytes.end(), u8{0x77});
  expected.private_data.fill(0x77);
  test::expect_both_ways<RTU>(bytes, expected);
}

}  // namespace
}  // namespace verbena::cm
