#include "wire/ib/cm/rep.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace verbena::cm {
namespace {

TEST(REPTest, FromCapture) {
  // tests/captures/rxe-cm-rping.pcap, frame 2, as tshark prints it: Local Communication ID
  // 0x86d97925, Remote Communication ID 0x60b59dc3, Local Q_Key 0, Local QPN 0x000023, Local EE
  // Context Number 0, Starting PSN 0x280364, Responder Resources 1, Initiator Depth 1, Target ACK
  // Delay 0x0f, Failover Accepted 0, End-To-End Flow Control 0, RNR Retry Count 7, SRQ 0, Local CA
  // GUID 0x505400fffe770002
  test::expect_golden<REP>({"rxe-cm-rping.pcap", 2, test::kCMMessageAt},
                           {0x86, 0xd9, 0x79, 0x25, 0x60, 0xb5, 0x9d, 0xc3, 0x00, 0x00, 0x00, 0x00,
                            0x00, 0x00, 0x23, 0x00, 0x00, 0x00, 0x00, 0x00, 0x28, 0x03, 0x64, 0x00,
                            0x01, 0x01, 0x78, 0xe0, 0x50, 0x54, 0x00, 0xff, 0xfe, 0x77, 0x00, 0x02},
                           {.local_comm_id = CommId{0x86d97925},
                            .remote_comm_id = CommId{0x60b59dc3},
                            .local_qpn = QPN{0x23},
                            .starting_psn = PSN{0x280364},
                            .responder_resources = 1,
                            .initiator_depth = 1,
                            .target_ack_delay = 0x0f,
                            .rnr_retry_count = 7,
                            .local_ca_guid = GUID{0x505400fffe770002}});
}

struct OtherREP {
  const char* file;
  u32 local, remote, qpn, psn, resources, rnr_retries;
};

TEST(REPTest, EveryOtherCapturedREP) {  // as tshark prints each
  for (const OtherREP& other :
       {OtherREP{"rxe-cm-ucmatose.pcap", 0x8dd97925, 0x65b59dc3, 0x25, 0x8dfacb, 1, 7},
        OtherREP{"rxe-cm-ops.pcap", 0x84d97925, 0x61b59dc3, 0x22, 0x68aad2, 4, 5}}) {
    const REP expected{.local_comm_id = CommId{other.local},
                       .remote_comm_id = CommId{other.remote},
                       .local_qpn = QPN{other.qpn},
                       .starting_psn = PSN{other.psn},
                       .responder_resources = static_cast<u8>(other.resources),
                       .initiator_depth = static_cast<u8>(other.resources),
                       .target_ack_delay = 0x0f,
                       .rnr_retry_count = static_cast<u8>(other.rnr_retries),
                       .local_ca_guid = GUID{0x505400fffe770002}};
    const std::vector<u8> frame = test::captured_frame(other.file, 2);
    EXPECT_EQ(REP::decode(std::span(frame).subspan(test::kCMMessageAt)), expected) << other.file;
  }
}

TEST(REPTest, EveryFieldFull) {
  // As tshark prints these bytes, but for the Vendor ID 0x02c9fe: Local Communication ID
  // 0x01020304, Remote Communication ID 0x05060708, Local Q_Key 0x12345678, Local QPN 0xabcdef,
  // Local EE Context Number 0x123456, Starting PSN 0xfedcba, Responder Resources 0x11, Initiator
  // Depth 0x22, Target ACK Delay 0x15, Failover Accepted 2, End-To-End Flow Control 1, RNR Retry
  // Count 5, SRQ 1, Local CA GUID 0x1122334455667788
  std::array<u8, REP::kSize> bytes = {0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x12,
                                      0x34, 0x56, 0x78, 0xab, 0xcd, 0xef, 0x02, 0x12, 0x34,
                                      0x56, 0xc9, 0xfe, 0xdc, 0xba, 0xfe, 0x11, 0x22, 0xad,
                                      0xb0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88};
  REP expected{.local_comm_id = CommId{0x01020304},
               .remote_comm_id = CommId{0x05060708},
               .local_q_key = QKey{0x12345678},
               .local_qpn = QPN{0xabcdef},
               .local_eecn = 0x123456,
               .vendor_id = 0x02c9fe,
               .starting_psn = PSN{0xfedcba},
               .responder_resources = 0x11,
               .initiator_depth = 0x22,
               .target_ack_delay = 0x15,
               .failover = Failover::kRejected,
               .end_to_end_flow_control = true,
               .rnr_retry_count = 5,
               .srq = true,
               .local_ca_guid = GUID{0x1122334455667788}};
  std::fill(bytes.begin() + 36, bytes.end(), u8{0x77});
  expected.private_data.fill(0x77);
  test::expect_both_ways<REP>(bytes, expected);
}

}  // namespace
}  // namespace verbena::cm
