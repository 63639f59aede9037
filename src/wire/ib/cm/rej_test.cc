#include "wire/ib/cm/rej.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace verbena::cm {
namespace {

TEST(REJTest, FromCapture) {
  // tests/captures/rxe-cm-reject.pcap, frame 2, as tshark prints it: Local Communication ID 0,
  // Remote Communication ID 0x63b59dc3, Message REJected 0x0, Reject Info Length 0, Reason 0x0008
  test::expect_golden<REJ>(
      {"rxe-cm-reject.pcap", 2, test::kCMMessageAt},
      {0x00, 0x00, 0x00, 0x00, 0x63, 0xb5, 0x9d, 0xc3, 0x00, 0x00, 0x00, 0x08},
      {.remote_comm_id = CommId{0x63b59dc3}, .reason = RejectReason::kInvalidServiceID});
}

TEST(REJTest, EveryFieldFull) {
  // As tshark prints these bytes: Local Communication ID 0x01020304, Remote Communication ID
  // 0x05060708, Message REJected 0x1, Reject Info Length 0x48, Reason 0x001c, ARI 5555.., private
  // data 7777..
  std::array<u8, REJ::kSize> bytes = {0x01, 0x02, 0x03, 0x04, 0x05, 0x06,
                                      0x07, 0x08, 0x40, 0x90, 0x00, 0x1c};
  REJ expected{.local_comm_id = CommId{0x01020304},
               .remote_comm_id = CommId{0x05060708},
               .message_rejected = Answered::kREP,
               .reject_info_length = 72,
               .reason = RejectReason::kConsumerReject};
  std::fill_n(bytes.begin() + 12, 72, u8{0x55});
  expected.ari.fill(0x55);
  std::fill(bytes.begin() + 84, bytes.end(), u8{0x77});
  expected.private_data.fill(0x77);
  test::expect_both_ways<REJ>(bytes, expected);
}

TEST(REJTest, EveryReasonSurvives) {
  std::array<u8, REJ::kSize> bytes{};
  for (u16 reason = 0; reason < 300; ++reason) {
    REJ{.reason = RejectReason{reason}}.encode(bytes);
    EXPECT_EQ(static_cast<u16>(REJ::decode(bytes)->reason), reason);
  }
}

}  // namespace
}  // namespace verbena::cm
