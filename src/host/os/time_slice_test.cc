#include "host/os/time_slice.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <thread>

namespace verbena::host {
namespace {

SchedulingAttributes attributes_now() {
  SchedulingAttributes attributes;
  EXPECT_EQ(::syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0), 0);
  return attributes;
}

TEST(TimeSlice, IsOfTheThreadAndThoseThatItStarts) {
  std::thread([] {
    const u64 before_ns = attributes_now().runtime_ns;
    if (before_ns == 0) GTEST_SKIP() << "this kernel has no slices of threads";
    set_time_slice(kShortTimeSlice);
    std::thread([] {
      EXPECT_EQ(attributes_now().runtime_ns, static_cast<u64>(kShortTimeSlice.ns()));
      set_time_slice(Duration());
    }).join();
    EXPECT_EQ(attributes_now().runtime_ns, static_cast<u64>(kShortTimeSlice.ns()));
    set_time_slice(Duration());
    EXPECT_EQ(attributes_now().runtime_ns, before_ns);
  }).join();
}

// A thread without privilege could not take back its priority.
TEST(TimeSlice, LeavesPriorityAndPolicyAlone) {
  std::thread([] {
    ASSERT_EQ(::setpriority(PRIO_PROCESS, 0, 7), 0);
    set_time_slice(kShortTimeSlice);
    EXPECT_EQ(attributes_now().nice, 7);
    const sched_param none{};
    ASSERT_EQ(::sched_setscheduler(0, SCHED_BATCH, &none), 0);
    set_time_slice(kShortTimeSlice);
    EXPECT_EQ(attributes_now().policy, static_cast<u32>(SCHED_BATCH));
  }).join();
}

}  // namespace
}  // namespace verbena::host
