#include "wire/ib/cm/mra.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace verbena::cm {
namespace {

// No capture holds one, and tshark 4.0.17 does not decode it; places: Linux's
// include/rdma/ibta_vol1_c12.h.
TEST(MRATest, EveryFieldFull) {
  std::array<u8, MRA::kSize> bytes = {0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x80, 0xc0};
  MRA expected{.local_comm_id = CommId{0x01020304},
               .remote_comm_id = CommId{0x05060708},
               .message_mraed = Answered::kOther,
               .service_timeout = 24};
  std::fill(bytes.begin() + 10, bytes.end(), u8{0x77});
  expected.private_data.fill(0x77);
  test::expect_both_ways<MRA>(bytes, expected);
}

TEST(MRATest, ReservedBitsAreIgnored) {
  std::array<u8, MRA::kSize> bytes{};
  bytes[8] = 0x3f;
  bytes[9] = 0x07;
  EXPECT_EQ(MRA::decode(bytes), MRA{});
}

}  // namespace
}  // namespace verbena::cm
