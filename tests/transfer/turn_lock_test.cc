#include "agent/turn_lock.h"

#include <gtest/gtest.h>

#include <thread>

namespace verbena::agent {
namespace {

// The poller gives its lock away once for each thread that waits, and no thread waits in vain.
TEST(TurnLock, AThreadThatWaitsIsTheNext) {
  constexpr u32 kTurns = 200;
  TurnLock lock;
  std::atomic<bool> is_polling = false, is_over = false;
  u64 given = 0;
  std::thread poller([&] {
    const std::lock_guard<TurnLock> guard(lock);
    is_polling = true;
    while (!is_over) given += lock.let_others_in() ? 1 : 0;
  });
  while (!is_polling) std::this_thread::yield();
  for (u32 turn = 0; turn < kTurns; ++turn) const std::lock_guard<TurnLock> guard(lock);
  is_over = true;
  poller.join();
  EXPECT_GE(given, 1u);
  EXPECT_LE(given, kTurns);
}

TEST(TurnLock, NoThreadWaits) {
  TurnLock lock;
  const std::lock_guard<TurnLock> guard(lock);
  EXPECT_FALSE(lock.let_others_in());
}

}  // namespace
}  // namespace verbena::agent
