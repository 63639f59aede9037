#include "host/progress/helper_thread.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <thread>

namespace verbena::host {
namespace {

Time at(Duration after) { return Time() + sec(1) + after; }

TEST(HelperThreadTest, AnEarlierAlarmWillDoWhileItIsNotNear) {
  const Time now = at(us(0));
  EXPECT_TRUE(HelperThread::will_do(at(ms(3)), Time::never(), now));
  EXPECT_TRUE(HelperThread::will_do(at(ms(3)), at(ms(3)), now));
  EXPECT_FALSE(HelperThread::will_do(at(us(3001)), at(ms(3)), now));  // too late
  EXPECT_TRUE(HelperThread::will_do(at(us(500)), at(ms(3)), now));
  EXPECT_FALSE(HelperThread::will_do(at(us(499)), at(ms(3)), now));
  EXPECT_TRUE(HelperThread::will_do(at(us(499)), at(us(998)), now));  // half of the time
  EXPECT_FALSE(HelperThread::will_do(at(us(499)), at(us(999)), now));
  EXPECT_FALSE(HelperThread::will_do(at(us(-1)), now, now));  // it may have come already
}

// Calls that come again and again put it off.
TEST(HelperThreadTest, APostponedAlarmDoesNotCome) {
  Expected<std::unique_ptr<HelperThread>> helper = HelperThread::start({}, {.serve = [] {}});
  ASSERT_TRUE(helper.has_value());
  Time now = Time() + sec(1 << 20), set_to;
  u32 settings = 0;
  for (Duration t = us(0); t < ms(20); t = t + us(10)) {
    const Time before = set_to;
    set_to = (*helper)->wake_at(now + t + ms(2), now + t);
    settings += set_to != before;
    EXPECT_GE(set_to, now + t + us(500) - us(10));
    EXPECT_LE(set_to, now + t + ms(2));
  }
  EXPECT_EQ(settings, 14u);  // one in 1.5 ms
  EXPECT_EQ((*helper)->wakeups(), 0u);
}

// The link's descriptor is always readable, so the thread looks at each event whether it is the one
// that watch() adds.
TEST(HelperThreadTest, WatchesADescriptorWhileItServesOthers) {
  const Descriptor busy(::eventfd(1, EFD_CLOEXEC)), watched(::eventfd(0, EFD_CLOEXEC));
  std::atomic<bool> is_answered{false};
  const std::array descriptors{busy.get()};
  Expected<std::unique_ptr<HelperThread>> helper =
      HelperThread::start(descriptors, {.serve = [] {}});
  ASSERT_TRUE(helper.has_value());
  while ((*helper)->wakeups() == 0) std::this_thread::yield();
  (*helper)->watch(watched.get(), [&] {
    eventfd_t value = 0;
    eventfd_read(watched.get(), &value);
    is_answered = true;
  });
  eventfd_write(watched.get(), 1);
  while (!is_answered) std::this_thread::yield();
  (*helper)->stop();
}

}  // namespace
}  // namespace verbena::host
