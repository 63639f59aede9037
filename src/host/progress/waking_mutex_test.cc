#include "host/progress/waking_mutex.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <limits>
#include <mutex>
#include <thread>

namespace verbena::host {
namespace {

bool is_readable(int fd) {
  pollfd state{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&state, 1, 0) == 1;
}

EventDescriptor make_channel() { return std::move(*EventDescriptor::open()); }

// A channel to which add() blocks until some thread takes an event.
EventDescriptor make_full_channel() {
  EventDescriptor channel = make_channel();
  const u64 most = std::numeric_limits<u64>::max() - 1;
  EXPECT_EQ(::write(channel.fd(), &most, sizeof(most)), static_cast<ssize_t>(sizeof(most)));
  return channel;
}

TEST(WakingMutexTest, SleepersAreWokenWhenTheLockIsFree) {
  WakingMutex mutex;
  std::array channels{make_channel(), make_channel()};
  mutex.lock();
  for (EventDescriptor& channel : channels) mutex.wakes().add(channel);
  for (const EventDescriptor& channel : channels) EXPECT_FALSE(is_readable(channel.fd()));
  mutex.unlock();
  for (EventDescriptor& channel : channels) EXPECT_EQ(channel.take(), 0);
  const std::lock_guard again(mutex);
  EXPECT_TRUE(mutex.wakes().is_empty());
}

TEST(WakingMutexTest, AProcessIsWokenByItsChannel) {
  WakingMutex mutex;
  ProcessWaker waker;
  const Expected<ProcessChannel> channel = ProcessChannel::claim(7);
  ASSERT_TRUE(channel);
  {
    const std::lock_guard lock(mutex);
    mutex.wakes().add(waker, channel->slot());
    EXPECT_FALSE(is_readable(channel->fd()));
  }
  EXPECT_TRUE(is_readable(channel->fd()));
}

TEST(WakingMutexTest, OneMoreThanFitsIsWokenAtOnce) {
  WakingMutex mutex;
  EventDescriptor listed = make_channel(), last = make_channel();
  const std::lock_guard lock(mutex);
  for (u32 i = 0; i < WakeList::kMax; ++i) mutex.wakes().add(listed);
  mutex.wakes().add(last);
  EXPECT_FALSE(is_readable(listed.fd()));
  EXPECT_TRUE(is_readable(last.fd()));
}

TEST(WakingMutexTest, TheLockIsFreeDuringAWakeAndSomeWaitForItsEnd) {
  WakingMutex mutex;
  EventDescriptor channel = make_full_channel();
  mutex.lock();
  mutex.wakes().add(channel);
  std::thread waker([&] { mutex.unlock(); });
  mutex.lock();  // and its thread still wakes
  mutex.unlock();
  std::atomic<bool> locked = false;
  std::thread other([&] {
    mutex.lock_after_wakes();
    locked = true;
    mutex.unlock();
  });
  ::poll(nullptr, 0, 20);
  EXPECT_FALSE(locked);
  EXPECT_EQ(channel.take(), 0);
  waker.join();
  other.join();
  EXPECT_TRUE(locked);
}

}  // namespace
}  // namespace verbena::host
