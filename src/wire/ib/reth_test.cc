#include "wire/ib/reth.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace verbena {
namespace {

TEST(RETHTest, FromCapture) {
  // tests/captures/rxe-rc-write.pcap, frame 1, as tshark prints it: Virtual Address
  // 0x0000000002a14000, Remote Key 0x000003f0, DMA Length 0
  test::expect_golden<RETH>({"rxe-rc-write.pcap", 1, test::kIPv4ExtendedAt},
                            {0x00, 0x00, 0x00, 0x00, 0x02, 0xa1, 0x40, 0x00,  //
                             0x00, 0x00, 0x03, 0xf0, 0x00, 0x00, 0x00, 0x00},
                            {.virtual_address = 0x02a14000, .r_key = RKey{0x3f0}, .dma_length = 0});
}

TEST(RETHTest, EveryFieldFull) {
  test::expect_both_ways<RETH>(
      {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,  //
       0xfe, 0xdc, 0xba, 0x98, 0x80, 0x00, 0x00, 0x00},
      {.virtual_address = 0x0123456789abcdef, .r_key = RKey{0xfedcba98}, .dma_length = 1u << 31});
}

}  // namespace
}  // namespace verbena
