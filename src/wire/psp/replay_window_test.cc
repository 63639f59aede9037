#include "wire/psp/replay_window.h"

#include <set>

#include <gtest/gtest.h>

#include "base/prng.h"

namespace verbena {
namespace {

bool accept(ReplayWindow& window, u64 iv) {
  if (!window.is_new(iv)) return false;
  window.note(iv);
  return true;
}

TEST(ReplayWindowTest, EachIVOnce) {
  ReplayWindow window;
  EXPECT_FALSE(window.is_new(0));
  EXPECT_TRUE(accept(window, 5));
  EXPECT_FALSE(accept(window, 5));
  EXPECT_TRUE(accept(window, 4));
  EXPECT_FALSE(accept(window, 4));
  EXPECT_TRUE(accept(window, 6));
}

TEST(ReplayWindowTest, RefusesWhatIsTooOld) {
  ReplayWindow window;
  EXPECT_TRUE(accept(window, 100'000));
  EXPECT_TRUE(accept(window, 100'000 - 4000));
  EXPECT_FALSE(accept(window, 100'000 - ReplayWindow::kSize));
  EXPECT_FALSE(accept(window, 1));
}

TEST(ReplayWindowTest, FarJumpForgetsAll) {
  ReplayWindow window;
  for (u64 iv = 1; iv <= 100; ++iv) EXPECT_TRUE(accept(window, iv));
  EXPECT_TRUE(accept(window, u64{1} << 40));
  EXPECT_FALSE(accept(window, 50));
  EXPECT_TRUE(accept(window, (u64{1} << 40) - 50));
}

// Against a plain model: no IV is accepted twice, and a new one within the window always is.
TEST(ReplayWindowTest, AgainstASet) {
  PRNG prng(7);
  ReplayWindow window;
  std::set<u64> seen;
  u64 newest = 0;
  for (u32 i = 0; i < 200'000; ++i) {
    const u64 base = newest > 5000 ? newest - 5000 : 1;
    const u64 iv = base + prng.below(5100);
    const bool is_new = !seen.contains(iv);
    const bool accepted = accept(window, iv);
    EXPECT_TRUE(is_new || !accepted) << iv;
    EXPECT_TRUE(accepted || !is_new || (iv <= newest && newest - iv >= 4000)) << iv;
    if (accepted) {
      seen.insert(iv);
      newest = std::max(newest, iv);
    }
  }
}

}  // namespace
}  // namespace verbena
