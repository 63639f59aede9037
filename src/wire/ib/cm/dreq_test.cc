#include "wire/ib/cm/dreq.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace verbena::cm {
namespace {

TEST(DREQTest, FromCapture) {
  // tests/captures/rxe-cm-ucmatose.pcap, frame 8, as tshark prints it: Local Communication ID
  // 0x8dd97925, Remote Communication ID 0x65b59dc3, Remote QPN/EECN 0x000026, private data 0
  test::expect_golden<DREQ>({"rxe-cm-ucmatose.pcap", 8, test::kCMMessageAt},
                            {0x8d, 0xd9, 0x79, 0x25, 0x65, 0xb5, 0x9d, 0xc3, 0x00, 0x00, 0x26},
                            {.local_comm_id = CommId{0x8dd97925},
                             .remote_comm_id = CommId{0x65b59dc3},
                             .remote_qpn = QPN{0x26}});
}

TEST(DREQTest, EveryFieldFull) {
  std::array<u8, DREQ::kSize> bytes = {0x01, 0x02, 0x03, 0x04, 0x05, 0x06,
                                       0x07, 0x08, 0xab, 0xcd, 0xef, 0x00};
  DREQ expected{.local_comm_id = CommId{0x01020304},
                .remote_comm_id = CommId{0x05060708},
                .remote_qpn = QPN{0xabcdef}};
  std::fill(bytes.begin() + 12, bytes.end(), u8{0x77});
  expected.private_data.fill(0x77);
  test::expect_both_ways<DREQ>(bytes, expected);
}

}  // namespace
}  // namespace verbena::cm
