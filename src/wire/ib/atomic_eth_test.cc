#include "wire/ib/atomic_eth.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace verbena {
namespace {

TEST(AtomicETHTest, FromCapture) {
  // tests/captures/rxe-rc-atomic.pcap, frame 1, as tshark prints it: CmpSwap (19), Virtual Address
  // 0x0000000039172000, Remote Key 0x00000579, Swap Data 11072869122414935808, Compare Data
  // 1234605616436508552
  test::expect_golden<AtomicETH>({"rxe-rc-atomic.pcap", 1, test::kIPv4ExtendedAt},
                                 {0x00, 0x00, 0x00, 0x00, 0x39, 0x17, 0x20,  //
                                  0x00, 0x00, 0x00, 0x05, 0x79, 0x99, 0xaa,  //
                                  0xbb, 0xcc, 0xdd, 0xee, 0xff, 0x00, 0x11,  //
                                  0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88},
                                 {.virtual_address = 0x39172000,
                                  .r_key = RKey{0x579},
                                  .swap_or_add = 11072869122414935808u,
                                  .compare = 1234605616436508552u});
}

TEST(AtomicAckETHTest, FromCapture) {
  // tests/captures/rxe-rc-atomic.pcap, frame 2, as tshark prints it: ATOMIC Acknowledge (18),
  // Original Remote Data 1234605616436508552. It lies behind an AETH.
  test::expect_golden<AtomicAckETH>({"rxe-rc-atomic.pcap", 2, test::kIPv4ExtendedAt + 4},
                                    {0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88},
                                    {.original_data = 1234605616436508552u});
}

}  // namespace
}  // namespace verbena
