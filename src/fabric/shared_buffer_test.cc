#include "fabric/shared_buffer.h"

#include <gtest/gtest.h>

#include <deque>

#include "base/prng.h"

namespace verbena::fabric {
namespace {

using Verdict = SharedBuffer::Verdict;

// Two ports; a pool of 80 000 bytes beside reserves and headroom.
SharedBuffer buffer(u32 alpha = SharedBuffer::kAlphaOne / 8, u32 headroom = 10'000) {
  const SharedBufferConfig config{
      .size = 80'000 + 2 * (1000 + headroom), .reserve = 1000, .resume_offset = 2000};
  return SharedBuffer(
      config, {{.headroom = headroom, .alpha = alpha}, {.headroom = headroom, .alpha = alpha}});
}

TEST(SharedBuffer, TheThresholdIsAlphaOfWhatIsLeft) {
  SharedBuffer b = buffer();
  EXPECT_EQ(b.threshold(0), 10'000u);
  EXPECT_EQ(b.admit(0, 3, 1000), Verdict::kAdmitted);  // the reserve
  EXPECT_EQ(b.threshold(0), 10'000u);
  EXPECT_EQ(b.admit(0, 3, 8000), Verdict::kAdmitted);
  EXPECT_EQ(b.shared_used(), 8000u);
  EXPECT_EQ(b.threshold(0), 9000u);
  EXPECT_EQ(b.threshold(1), 9000u);
}

TEST(SharedBuffer, PausesOnceAndEndsItBelowTheThreshold) {
  SharedBuffer b = buffer();
  u32 admitted = 0;
  while (b.admit(0, 3, 1000) == Verdict::kAdmitted) ++admitted;
  EXPECT_EQ(admitted, 9u);  // one in the reserve, eight shared; with a ninth the threshold is 8875
  EXPECT_TRUE(b.paused(0, 3));
  EXPECT_FALSE(b.paused(0, 4));
  EXPECT_EQ(b.admit(0, 3, 1000), Verdict::kAdmitted);  // headroom; the pause is on its way already
  u32 released = 0;
  do ++released;
  while (!b.release(0, 3, 1000));
  EXPECT_FALSE(b.paused(0, 3));
  EXPECT_EQ(released, 3u);  // headroom, then shared: 7000 and the offset of 2000 are below 9125
}

TEST(SharedBuffer, HeadroomIsTheLastRoom) {
  SharedBuffer b = buffer();
  u32 admitted = 0;
  while (b.admit(0, 3, 1000) != Verdict::kRefused) ++admitted;
  EXPECT_EQ(admitted, 1u + 8 + 10 + 1);  // reserve, shared up to the threshold, headroom
  EXPECT_EQ(b.admit(1, 3, 1000), Verdict::kAdmitted);  // another port's is its own
}

TEST(SharedBuffer, WhatCannotBePausedMayFillAll) {
  SharedBuffer b = buffer();
  while (b.admit(0, 3, 1000) != Verdict::kRefused) {
  }
  u32 admitted = 0;
  while (b.admit(0, 3, 1000, false) != Verdict::kRefused) ++admitted;
  EXPECT_EQ(admitted, 82u);  // all of 102 kB but the 20 that were there
}

TEST(SharedBuffer, EmptyAgainAfterAll) {
  PRNG prng(1);
  SharedBuffer b = buffer();
  struct Held {
    u32 port, priority, bytes;
  };
  std::deque<Held> held;
  const auto release_one = [&] {
    (void)b.release(held.front().port, held.front().priority, held.front().bytes);
    held.pop_front();
  };
  for (int i = 0; i < 10'000; ++i) {
    const Held frame{static_cast<u32>(prng.below(2)), static_cast<u32>(prng.below(kPriorities)),
                     static_cast<u32>(prng.in(64, 1500))};
    const Verdict verdict = b.admit(frame.port, frame.priority, frame.bytes, prng.chance(0.9));
    if (verdict != Verdict::kRefused) held.push_back(frame);
    if (held.size() > prng.below(100)) release_one();
  }
  while (!held.empty()) release_one();
  EXPECT_EQ(b.shared_used(), 0u);
  EXPECT_EQ(b.threshold(0), 10'000u);
  for (u32 priority = 0; priority < kPriorities; ++priority) {
    EXPECT_EQ(b.used(0, priority), 0u);
    EXPECT_FALSE(b.paused(0, priority));
  }
}

}  // namespace
}  // namespace verbena::fabric
