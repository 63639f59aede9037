#include "wire/ib/rnr_timer.h"

#include <gtest/gtest.h>

namespace verbena {
namespace {

TEST(RNRTimerTest, KnownValues) {
  EXPECT_EQ(rnr_timer(0), us(655'360));
  EXPECT_EQ(rnr_timer(1), us(10));
  EXPECT_EQ(rnr_timer(12), us(640));    // ibv_modify_qp(3): "0.64 milliseconds delay"
  EXPECT_EQ(rnr_timer(18), us(5'120));  // tests/captures/rxe-rc-rnr.pcap frame 2: "5.12 ms (18)"
  EXPECT_EQ(rnr_timer(31), us(491'520));
  EXPECT_EQ(rnr_timer(32 + 1), rnr_timer(1));
}

TEST(RNRTimerTest, DoublesEverySecondCode) {
  for (u8 code = 4; code < 30; ++code)
    EXPECT_EQ(rnr_timer(static_cast<u8>(code + 2)), rnr_timer(code) * 2) << int{code};
  EXPECT_EQ(rnr_timer(0), rnr_timer(30) * 2);  // where the sequence would go on
}

TEST(RNRTimerTest, GrowsWithTheCodeExceptForZero) {
  for (u8 code = 1; code < 31; ++code)
    EXPECT_LT(rnr_timer(code), rnr_timer(static_cast<u8>(code + 1))) << int{code};
}

}  // namespace
}  // namespace verbena
