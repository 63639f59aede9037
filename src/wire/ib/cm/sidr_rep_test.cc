#include "wire/ib/cm/sidr_rep.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace verbena::cm {
namespace {

TEST(SIDRREPTest, FromCapture) {
  // tests/captures/rxe-cm-ud.pcap, frame 2 (tshark 4.0.17 does not decode it; places: Linux's
  // include/rdma/ibta_vol1_c12.h): QPN 0x24 with rdma_cm's Q_Key 0x01234567.
  test::expect_golden<SIDRREP>(
      {"rxe-cm-ud.pcap", 2, test::kCMMessageAt},
      {0x62, 0xb5, 0x9d, 0xc3, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x24, 0x00,
       0x00, 0x00, 0x00, 0x00, 0x01, 0x11, 0x1c, 0x06, 0x01, 0x23, 0x45, 0x67},
      {.request_id = CommId{0x62b59dc3},
       .qpn = QPN{0x24},
       .service_id = ServiceId{0x1111c06},
       .q_key = QKey{0x01234567}});
}

TEST(SIDRREPTest, EveryFieldFull) {
  std::array<u8, SIDRREP::kSize> bytes = {0x01, 0x02, 0x03, 0x04, 0x02, 0x48, 0x00, 0x00,
                                          0xab, 0xcd, 0xef, 0x00, 0x11, 0x22, 0x33, 0x44,
                                          0x55, 0x66, 0x77, 0x88, 0x12, 0x34, 0x56, 0x78};
  SIDRREP expected{.request_id = CommId{0x01020304},
                   .status = SIDRStatus::kRejected,
                   .info_length = 72,
                   .qpn = QPN{0xabcdef},
                   .service_id = ServiceId{0x1122334455667788},
                   .q_key = QKey{0x12345678}};
  std::fill_n(bytes.begin() + 24, 72, u8{0x55});
  expected.info.fill(0x55);
  std::fill(bytes.begin() + 96, bytes.end(), u8{0x77});
  expected.private_data.fill(0x77);
  test::expect_both_ways<SIDRREP>(bytes, expected);
}

}  // namespace
}  // namespace verbena::cm
