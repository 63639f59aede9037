#include "host/local/settling_memory.h"

#include <gtest/gtest.h>

namespace verbena::host {
namespace {

class SettlingMemoryTest : public testing::Test {
 protected:
  static Time at(Duration d) { return Time() + sec(1) + d; }
  static std::span<const u8> at_address(u64 begin, u64 length) {
    return {reinterpret_cast<const u8*>(begin), length};
  }
  // The address of what is taken; 0: nothing.
  u64 take(Duration when) {
    const auto memory = settling_.take(at(when));
    return memory ? reinterpret_cast<u64>(memory->data()) : 0;
  }

  SettlingMemory settling_;
};

TEST_F(SettlingMemoryTest, IsTakenAtOnceWhereItIsNew) {
  EXPECT_EQ(settling_.next(), Time::never());
  EXPECT_EQ(take(ms(0)), 0u);
  settling_.add(at_address(0x2000, 0x1000), at(ms(0)));
  settling_.add(at_address(0x1000, 0x1000), at(ms(0)));  // beside it
  EXPECT_EQ(settling_.next(), at(ms(0)));
  EXPECT_EQ(take(ms(0)), 0x2000u);
  EXPECT_EQ(take(ms(0)), 0x1000u);
  EXPECT_EQ(take(ms(0)), 0u);
  EXPECT_EQ(settling_.next(), Time::never());
}

TEST_F(SettlingMemoryTest, WaitsWhereItWasTakenBefore) {
  settling_.add(at_address(0x1000, 0x2000), at(ms(0)));
  EXPECT_EQ(take(ms(0)), 0x1000u);
  settling_.add(at_address(0x2fff, 0x1000), at(ms(40)));  // one byte of it
  EXPECT_EQ(settling_.next(), at(ms(140)));
  EXPECT_EQ(take(ms(139)), 0u);
  settling_.add(at_address(0x8000, 0x1000), at(ms(139)));  // new, so before it
  EXPECT_EQ(take(ms(139)), 0x8000u);
  EXPECT_EQ(take(ms(139)), 0u);
  EXPECT_EQ(take(ms(140)), 0x2fffu);
}

TEST_F(SettlingMemoryTest, WaitsAnewWhereItIsRegisteredAgain) {
  settling_.add(at_address(0x1000, 0x1000), at(ms(0)));
  EXPECT_EQ(take(ms(0)), 0x1000u);
  for (int i = 1; i < 10; ++i) {
    settling_.add(at_address(0x1000, 0x1000), at(ms(40) * i));
    EXPECT_EQ(take(ms(40) * i + ms(39)), 0u);
  }
  EXPECT_EQ(take(ms(40) * 9 + ms(100)), 0x1000u);
  EXPECT_EQ(settling_.next(), Time::never());
}

TEST_F(SettlingMemoryTest, ForgetsWhatIsTooMuch) {
  constexpr u64 kMax = SettlingMemory::kMaxWaiting;
  for (u64 i = 1; i <= kMax + 1; ++i) settling_.add(at_address(i << 12, 0x1000), at(ms(0)));
  for (u64 i = 1; i <= kMax; ++i) EXPECT_EQ(take(ms(0)), i << 12);
  EXPECT_EQ(take(ms(0)), 0u);
  settling_.add(at_address((kMax + 1) << 12, 0x1000), at(ms(1)));
  EXPECT_EQ(take(ms(1)), (kMax + 1) << 12);
  settling_.add(at_address(1 << 12, 0x1000), at(ms(2)));  // the oldest of those taken
  EXPECT_EQ(take(ms(2)), 1u << 12);
  settling_.add(at_address(kMax << 12, 0x1000), at(ms(2)));
  EXPECT_EQ(take(ms(2)), 0u);
}

}  // namespace
}  // namespace verbena::host
