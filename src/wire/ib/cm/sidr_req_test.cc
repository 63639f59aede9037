#include "wire/ib/cm/sidr_req.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace verbena::cm {
namespace {

TEST(SIDRREQTest, FromCapture) {
  // tests/captures/rxe-cm-ud.pcap, frame 1 (tshark 4.0.17 does not decode it; places: Linux's
  // include/rdma/ibta_vol1_c12.h): udaddy asks 10.77.0.2 for port 7174 of the UDP port space.
  SIDRREQ expected{.request_id = CommId{0x62b59dc3}, .service_id = ServiceId{0x1111c06}};
  expected.private_data = {0x00, 0x40, 0xa8, 0xe2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  10, 77,
                           0,    3,    0,    0,    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 77, 0,  2};
  test::expect_golden<SIDRREQ>(
      {"rxe-cm-ud.pcap", 1, test::kCMMessageAt},
      {0x62, 0xb5, 0x9d, 0xc3, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01,
       0x11, 0x1c, 0x06, 0x00, 0x40, 0xa8, 0xe2, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
       0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x0a, 0x4d, 0x00, 0x03, 0x00, 0x00, 0x00,
       0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x0a, 0x4d, 0x00, 0x02},
      expected);
}

TEST(SIDRREQTest, EveryFieldFull) {
  std::array<u8, SIDRREQ::kSize> bytes = {0x01, 0x02, 0x03, 0x04, 0x80, 0x01, 0x00, 0x00,
                                          0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88};
  SIDRREQ expected{.request_id = CommId{0x01020304},
                   .p_key = PKey{0x8001},
                   .service_id = ServiceId{0x1122334455667788}};
  std::fill(bytes.begin() + 16, bytes.end(), u8{0x77});
  expected.private_data.fill(0x77);
  test::expect_both_ways<SIDRREQ>(bytes, expected);
}

}  // namespace
}  // namespace verbena::cm
