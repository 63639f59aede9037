#include "wire/ib/cm/apr.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace verbena::cm {
namespace {

// No capture holds one, and tshark 4.0.17 does not decode it; places: Linux's
// include/rdma/ibta_vol1_c12.h.
TEST(APRTest, EveryFieldFull) {
  std::array<u8, APR::kSize> bytes = {0x01, 0x02, 0x03, 0x04, 0x05, 0x06,
                                      0x07, 0x08, 0x48, 0x02, 0x00, 0x00};
  APR expected{.local_comm_id = CommId{0x01020304},
               .remote_comm_id = CommId{0x05060708},
               .info_length = 72,
               .status = APRStatus::kNotSupported};
  std::fill_n(bytes.begin() + 12, 72, u8{0x55});
  expected.info.fill(0x55);
  std::fill(bytes.begin() + 84, bytes.end(), u8{0x77});
  expected.private_data.fill(0x77);
  test::expect_both_ways<APR>(bytes, expected);
}

}  // namespace
}  // namespace verbena::cm
