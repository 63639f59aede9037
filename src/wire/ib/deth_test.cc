#include "wire/ib/deth.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace verbena {
namespace {

TEST(DETHTest, FromCapture) {
  // tests/captures/rxe-ud.pcap, frame 3, as tshark prints it: Queue Key 0x11111111, Source Queue
  // Pair 0x00000016
  test::expect_golden<DETH>({"rxe-ud.pcap", 3, test::kIPv4ExtendedAt},
                            {0x11, 0x11, 0x11, 0x11, 0x00, 0x00, 0x00, 0x16},
                            {.q_key = QKey{0x11111111}, .source_qp = QPN{0x16}});
}

TEST(DETHTest, TheReservedByteIsIgnored) {
  const std::array<u8, DETH::kSize> bytes = {0x80, 0x01, 0x00, 0x00, 0xff, 0xab, 0xcd, 0xef};
  EXPECT_EQ(DETH::decode(bytes), (DETH{.q_key = kGSIQKey, .source_qp = QPN{0xabcdef}}));
}

TEST(DETHDeathTest, ASourceQPOfMoreThan24BitsIsACrash) {
  std::array<u8, DETH::kSize> bytes{};
  EXPECT_DEATH(DETH{.source_qp = QPN{0x1000000}}.encode(bytes), "source_qp");
}

}  // namespace
}  // namespace verbena
