#include "wire/ib/cm/lap.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace verbena::cm {
namespace {

// No capture holds one, and tshark 4.0.17 does not decode it; places: Linux's
// include/rdma/ibta_vol1_c12.h.
TEST(LAPTest, EveryFieldFull) {
  std::array<u8, LAP::kSize> bytes = {0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
                                      0x00, 0x00, 0x00, 0x00, 0xab, 0xcd, 0xef, 0xa8,
                                      0x00, 0x00, 0x00, 0x00, 0x12, 0x34, 0x56, 0x78};
  std::fill_n(bytes.begin() + 24, 16, u8{1});
  std::fill_n(bytes.begin() + 40, 16, u8{2});
  constexpr std::array<u8, 8> kRest = {0xab, 0xcd, 0xe0, 0x9c, 0x40, 0x2b, 0xd8, 0xa8};
  std::ranges::copy(kRest, bytes.begin() + 56);
  LAP expected{.local_comm_id = CommId{0x01020304},
               .remote_comm_id = CommId{0x05060708},
               .remote_qpn = QPN{0xabcdef},
               .remote_cm_response_timeout = 21,
               .alternate = {.local_lid = 0x1234,
                             .remote_lid = 0x5678,
                             .local_gid = *GID::parse("101:101:101:101:101:101:101:101"),
                             .remote_gid = *GID::parse("202:202:202:202:202:202:202:202"),
                             .flow_label = 0xabcde,
                             .packet_rate = 0x2b,
                             .traffic_class = 0x9c,
                             .hop_limit = 0x40,
                             .sl = 13,
                             .subnet_local = true,
                             .local_ack_timeout = 21}};
  std::fill(bytes.begin() + 64, bytes.end(), u8{0x77});
  expected.private_data.fill(0x77);
  test::expect_both_ways<LAP>(bytes, expected);
}

}  // namespace
}  // namespace verbena::cm
