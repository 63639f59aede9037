#include "wire/ib/cm/req.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace verbena::cm {
namespace {

GID gid(const char* text) { return *GID::parse(text); }

// The common values of all REQs of the captures, as tshark prints them: Local CA GUID
// 0x505400fffe770003, Local Q_Key 0, Local and Remote EECN 0, both CM Response Timeouts 0x14,
// Transport Service Type 0, End-to-End Flow Control 0, Partition Key 0xffff, Path Packet Payload
// MTU 3, RDC Exists 0, Max CM Retries 0xf, SRQ 0, Extended Transport 0; primary: LIDs 65535, GIDs
// 10.77.0.3 and 10.77.0.2, Traffic Class 0, Hop Limit 0x40, SL 0, Subnet Local 0, Local ACK Timeout
// 0x13; alternate: all 0. tshark 4.0.17 takes Flow Label and Packet Rate from one byte too early;
// their places are those of Linux's include/rdma/ibta_vol1_c12.h.
REQ common() {
  return {.local_ca_guid = GUID{0x505400fffe770003},
          .remote_cm_response_timeout = 0x14,
          .local_cm_response_timeout = 0x14,
          .p_key = PKey{0xffff},
          .path_mtu_code = 3,
          .max_cm_retries = 15,
          .primary = {.local_lid = kPermissiveLID,
                      .remote_lid = kPermissiveLID,
                      .local_gid = gid("10.77.0.3"),
                      .remote_gid = gid("10.77.0.2"),
                      .hop_limit = 0x40,
                      .local_ack_timeout = 0x13}};
}

TEST(REQTest, FromCapture) {
  // tests/captures/rxe-cm-rping.pcap, frame 1, as tshark prints it: Local Communication ID
  // 0x60b59dc3, ServiceID 0x0000000001061c06, Local QPN 0x000023, Responder Resources 1, Initiator
  // Depth 1, Starting PSN 0xf36e1a, Retry Count 7, RNR Retry Count 7, and common() above; IP CM
  // header: version 0.0, IPv4, Source Port 0xc99b, 10.77.0.3 to 10.77.0.2
  REQ expected = common();
  expected.local_comm_id = CommId{0x60b59dc3};
  expected.service_id = ServiceId{0x1061c06};
  expected.local_qpn = QPN{0x23};
  expected.responder_resources = 1;
  expected.initiator_depth = 1;
  expected.starting_psn = PSN{0xf36e1a};
  expected.retry_count = 7;
  expected.rnr_retry_count = 7;
  expected.primary.flow_label = 0x885cb;
  expected.private_data = {0x00, 0x40, 0xc9, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  10, 77,
                           0,    3,    0,    0,    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 77, 0,  2};
  test::expect_golden<REQ>(
      {"rxe-cm-rping.pcap", 1, test::kCMMessageAt},
      {0x60, 0xb5, 0x9d, 0xc3, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  // IDs
       0x01, 0x06, 0x1c, 0x06, 0x50, 0x54, 0x00, 0xff, 0xfe, 0x77, 0x00, 0x03,  //
       0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x23, 0x01,  // QPN
       0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0xa0, 0xf3, 0x6e, 0x1a, 0xa7,  // PSN
       0xff, 0xff, 0x37, 0xf0, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00,  // primary path
       0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0x0a, 0x4d, 0x00, 0x03,  //
       0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff,  //
       0x0a, 0x4d, 0x00, 0x02, 0x88, 0x5c, 0xb0, 0x00, 0x00, 0x40, 0x00, 0x98,  //
       0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  // alternate path
       0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  //
       0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  //
       0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x40, 0xc9, 0x9b,  // private data
       0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  //
       0x0a, 0x4d, 0x00, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  //
       0x00, 0x00, 0x00, 0x00, 0x0a, 0x4d, 0x00, 0x02},
      expected);
}

struct OtherREQ {
  const char* file;
  u32 comm_id, port, qpn, resources, psn, retries, rnr_retries, flow_label, source_port;
};

TEST(REQTest, EveryOtherCapturedREQ) {  // as tshark prints each
  for (const OtherREQ& other : {OtherREQ{"rxe-cm-ucmatose.pcap", 0x65b59dc3, 0x1d2f, 0x26, 1,
                                         0x24b2b3, 5, 0, 0xfcbaf, 0x8180},
                                OtherREQ{"rxe-cm-reject.pcap", 0x63b59dc3, 0x270f, 0x24, 1,
                                         0x7f1a23, 7, 7, 0xc02c1, 0xe60e},
                                OtherREQ{"rxe-cm-ops.pcap", 0x61b59dc3, 0x1d2f, 0x22, 4, 0x9abeb4,
                                         5, 5, 0x7c7de, 0xc371}}) {
    REQ expected = common();
    expected.local_comm_id = CommId{other.comm_id};
    expected.service_id = ServiceId{0x1060000 | other.port};
    expected.local_qpn = QPN{other.qpn};
    expected.responder_resources = expected.initiator_depth = static_cast<u8>(other.resources);
    expected.starting_psn = PSN{other.psn};
    expected.retry_count = static_cast<u8>(other.retries);
    expected.rnr_retry_count = static_cast<u8>(other.rnr_retries);
    expected.primary.flow_label = other.flow_label;
    expected.private_data = {0x00, 0x40, static_cast<u8>(other.source_port >> 8),
                             static_cast<u8>(other.source_port)};
    constexpr std::array<u8, 4> kSource = {10, 77, 0, 3}, kDestination = {10, 77, 0, 2};
    std::ranges::copy(kSource, expected.private_data.begin() + 16);
    std::ranges::copy(kDestination, expected.private_data.begin() + 32);
    const std::vector<u8> frame = test::captured_frame(other.file, 1);
    EXPECT_EQ(REQ::decode(std::span(frame).subspan(test::kCMMessageAt)), expected) << other.file;
  }
}

TEST(REQTest, EveryFieldFull) {
  // As tshark prints these bytes, but for the Vendor ID 0x02c9fe, which it does not know: Local
  // Communication ID 0x01234567, ServiceID 0x1122334455667788,
  // Local CA GUID 0x99aabbccddeeff00, Local Q_Key 0x12345678, Local QPN 0xabcdef, Responder
  // Resources 0x21, Local EECN 0x345678, Initiator Depth 0x43, Remote EECN 0x9abcde, Remote CM
  // Response Timeout 0x15, Transport Service Type 3, End-to-End Flow Control 1, Starting PSN
  // 0xfedcba, Local CM Response Timeout 0x0a, Retry Count 5, Partition Key 0x8001, Path Packet
  // Payload MTU 5, RDC Exists 1, RNR Retry Count 6, Max CM Retries 0xa, SRQ 1, Extended Transport 1
  std::array<u8, REQ::kSize> bytes = {
      0x01, 0x23, 0x45, 0x67, 0x00, 0x02, 0xc9, 0xfe, 0x11, 0x22, 0x33, 0x44, 0x55,
      0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff, 0x00, 0x00, 0x00,
      0x00, 0x00, 0x12, 0x34, 0x56, 0x78, 0xab, 0xcd, 0xef, 0x21, 0x34, 0x56, 0x78,
      0x43, 0x9a, 0xbc, 0xde, 0xaf, 0xfe, 0xdc, 0xba, 0x55, 0x80, 0x01, 0x5e, 0xa9};
  REQ expected{.local_comm_id = CommId{0x01234567},
               .vendor_id = 0x02c9fe,
               .service_id = ServiceId{0x1122334455667788},
               .local_ca_guid = GUID{0x99aabbccddeeff00},
               .local_q_key = QKey{0x12345678},
               .local_qpn = QPN{0xabcdef},
               .responder_resources = 0x21,
               .local_eecn = 0x345678,
               .initiator_depth = 0x43,
               .remote_eecn = 0x9abcde,
               .remote_cm_response_timeout = 0x15,
               .transport_service = TransportService::kExtended,
               .end_to_end_flow_control = true,
               .starting_psn = PSN{0xfedcba},
               .local_cm_response_timeout = 0x0a,
               .retry_count = 5,
               .p_key = PKey{0x8001},
               .path_mtu_code = 5,
               .rdc_exists = true,
               .rnr_retry_count = 6,
               .max_cm_retries = 0xa,
               .srq = true,
               .extended_transport = kExtendedXRC,
               .primary = {.local_lid = 1, .local_ack_timeout = 31},
               .alternate = {.remote_lid = 2, .local_ack_timeout = 30},
               .sap_supported = true};
  bytes[53] = 1;
  bytes[95] = 31 << 3;
  bytes[99] = 2;
  bytes[139] = (30 << 3) | 4;
  std::fill(bytes.begin() + 140, bytes.end(), u8{0x77});
  expected.private_data.fill(0x77);
  test::expect_both_ways<REQ>(bytes, expected);
}

}  // namespace
}  // namespace verbena::cm
