#include "wire/ib/imm_dt.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace verbena {
namespace {

TEST(ImmDtTest, FromCapture) {
  // tests/captures/rxe-ud.pcap, frame 3, as tshark prints it: Immediate Data cafe1234, behind the
  // DETH
  test::expect_golden<ImmDt>({"rxe-ud.pcap", 3, test::kIPv4ExtendedAt + 8},
                             {0xca, 0xfe, 0x12, 0x34}, {.value = 0xcafe1234});
}

TEST(IETHTest, FromCapture) {
  // tests/captures/rxe-rc-mw-inv.pcap, frame 3, as tshark prints it: SEND Only with Invalidate
  // (23), IETH RKey 080001c1
  test::expect_golden<IETH>({"rxe-rc-mw-inv.pcap", 3, test::kIPv4ExtendedAt},
                            {0x08, 0x00, 0x01, 0xc1}, {.r_key = RKey{0x080001c1}});
}

}  // namespace
}  // namespace verbena
