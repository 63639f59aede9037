// HelperThread: sleeps on a link's descriptors and a timer, and calls its owner when something is
// due. Sleeps for ever while nothing is armed: no wakeups on an idle device.
#pragma once

#include <pthread.h>

#include <atomic>
#include <functional>
#include <memory>
#include <span>

#include "base/time.h"
#include "host/os/descriptor.h"
#include "host/os/error.h"

namespace verbena::host {

class HelperThread {
 public:
  struct Work {
    std::function<void()> serve;           // at every wakeup, until nothing is left to do
    std::function<void()> begin{}, end{};  // first and last in the thread; may be empty
  };
  // The thread listens.
  [[nodiscard]] static Expected<std::unique_ptr<HelperThread>> start(
      std::span<const int> descriptors, Work work);
  ~HelperThread() { stop(); }
  // `answer` runs in the thread whenever `fd` is readable, listening or not. Once; `fd` is closed
  // only when the thread has stopped, or makes it answer no more.
  void watch(int fd, std::function<void()> answer);
  void stop();  // waits for the thread to end; not to be called from it

  // These three are not thread-safe; the adapter's lock guards them.
  // Wake up for the descriptors, or not.
  void listen();
  void ignore();
  // Wakes the thread at `when`, or earlier if will_do(). Returns the time to which the alarm is
  // set.
  Time wake_at(Time when, Time now);
  // Whether an alarm for `set_to` will do for `when`: it comes earlier, and is not near. So
  // wake_at() is cheap when called again and again with a time that moves on, and such a time never
  // comes.
  [[nodiscard]] static bool will_do(Time set_to, Time when, Time now) {
    if (when == Time::never()) return true;
    return set_to <= when && (set_to - now >= kNear || set_to - now >= (when - now) / 2);
  }
  static constexpr Duration kNear = us(500);

  [[nodiscard]] bool is_stopping() const { return stopping_.load(std::memory_order_relaxed); }
  [[nodiscard]] u64 wakeups() const { return wakeups_.load(std::memory_order_relaxed); }

  // In a child after fork(), where the thread does not exist: closes our copies of its descriptors.
  void abandon();

 private:
  explicit HelperThread(Work work) : work_(std::move(work)) {}
  [[nodiscard]] bool open(std::span<const int> descriptors);
  [[nodiscard]] int create_thread();
  void watch_link(u32 events);
  void run();
  void sleep_and_serve();
  bool handle(int fd);

  Work work_;
  std::function<void()> answer_;
  std::atomic<int> watched_{-1};  // for answer_; set while the thread runs
  Descriptor
      link_poll_;  // an epoll of the link's descriptors, so that one call turns all on or off
  Descriptor poll_, timer_, stop_;
  bool listens_ = true;
  std::atomic<i64> alarm_ps_{Time::never().ps()};  // what timer_ is set to
  std::atomic<bool> stopping_{false};
  std::atomic<u64> wakeups_{0};
  pthread_t thread_{};
  bool running_ = false;
};

}  // namespace verbena::host
