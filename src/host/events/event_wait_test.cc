// Threads that wait for completion events and receive themselves, through sockets and through
// memory that both ends share.
#include "host/events/event_wait.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "host/live_adapter.h"
#include "host/queue_target_for_test.h"
#include "host/rc_endpoint_for_test.h"

namespace verbena::host {
namespace {

std::shared_ptr<Adapter> adapter_at(const char* ip) {
  return *Adapter::open(choose_local_addresses(ip)->front());
}

// A pair of connected QPs: `b` receives, and its events go to a queue.
struct WaitingPair {
  WaitingPair() : a(adapter_at("127.0.0.85")), b(adapter_at("127.0.0.86"), &target) {
    a.connect(b.self());
    b.connect(a.self());
  }
  void request_event() {
    b.post_receive();
    b.adapter().request_notification(b.cq(), NotifyOn::kAnyCompletion);
  }
  void send() {
    a.post(SendOp::kSend, 100);
    EXPECT_EQ(a.wait_for_completion().status, WQEStatus::kSuccess);
  }
  tl::expected<int, int> wait() { return wait_for_event(b.adapter(), target.queue()); }

  QueueTarget target;
  RCEndpoint a, b;
};

class EventWaitTest : public testing::TestWithParam<const char*> {
 protected:
  EventWaitTest() { ::setenv("VERBENA_LOCAL", GetParam(), 1); }
  ~EventWaitTest() override { ::unsetenv("VERBENA_LOCAL"); }
  static void let_it_sleep() { ::poll(nullptr, 0, 20); }
};

TEST_P(EventWaitTest, APacketWakesTheThreadAndNotTheHelper) {
  WaitingPair pair;
  const auto& live = dynamic_cast<LiveAdapter&>(pair.b.adapter());
  constexpr int kRounds = 20;
  int alone = 0;
  for (int i = 0; i < kRounds; ++i) {
    pair.request_event();
    u64 after = 0;
    std::thread waiter([&] {
      EXPECT_EQ(pair.wait(), 1);
      after = live.helper_wakeups();
    });
    let_it_sleep();
    const u64 before = live.helper_wakeups();
    pair.send();
    waiter.join();
    alone += after == before ? 1 : 0;
    EXPECT_EQ(pair.b.wait_for_completion().status, WQEStatus::kSuccess);
  }
  EXPECT_GT(alone, kRounds / 2);
}

TEST_P(EventWaitTest, EachOfManyThreadsGetsItsOwnEvents) {
  constexpr int kThreads = 4, kRounds = 100;
  std::vector<std::unique_ptr<WaitingPair>> pairs;
  std::vector<std::thread> waiters;
  std::array<std::atomic<int>, kThreads> rounds{};
  for (int t = 0; t < kThreads; ++t) pairs.push_back(std::make_unique<WaitingPair>());
  for (const auto& pair : pairs) pair->request_event();
  for (std::size_t t = 0; t < kThreads; ++t)
    waiters.emplace_back([&pair = *pairs[t], &round = rounds[t]] {
      for (int i = 0; i < kRounds; ++i) {
        EXPECT_EQ(pair.wait(), 1);
        EXPECT_EQ(pair.b.wait_for_completion().status, WQEStatus::kSuccess);
        pair.request_event();
        round = i + 1;
      }
    });
  for (int i = 0; i < kRounds; ++i)
    for (std::size_t t = 0; t < kThreads; ++t) {
      pairs[t]->send();
      while (rounds[t] <= i) std::this_thread::yield();
    }
  for (std::thread& waiter : waiters) waiter.join();
}

TEST_P(EventWaitTest, ASleeperGetsItsEventWhileAWokenThreadIsAway) {
  constexpr int kRounds = 20;
  WaitingPair first, second;
  const auto wait = [](WaitingPair& pair) {
    EXPECT_EQ(pair.wait(), 1);
    EXPECT_EQ(pair.b.wait_for_completion().status, WQEStatus::kSuccess);
  };
  std::atomic<bool> is_away = false, may_end = false;
  std::thread away([&] {
    for (int i = 0; i < kRounds; ++i) {
      first.request_event();
      wait(first);
    }
    is_away = true;
    while (!may_end) let_it_sleep();
  });
  second.request_event();
  std::thread sleeper([&] { wait(second); });
  for (int i = 0; i < kRounds; ++i) first.send();
  while (!is_away) std::this_thread::yield();
  second.send();
  sleeper.join();
  may_end = true;
  away.join();
}

TEST_P(EventWaitTest, ASignalEndsAWaitAsItEndsARead) {
  WaitingPair pair;
  pair.request_event();
  struct sigaction before {};
  ::sigaction(SIGUSR1, nullptr, &before);
  struct sigaction action {};
  static std::atomic<int> handled = 0;
  action.sa_handler = [](int) { ++handled; };
  for (const int flags : {SA_RESTART, 0}) {
    action.sa_flags = flags;
    ASSERT_EQ(::sigaction(SIGUSR1, &action, nullptr), 0);
    handled = 0;
    std::atomic<bool> done = false;
    std::thread waiter([&] {
      const tl::expected<int, int> event = pair.wait();
      EXPECT_EQ(event ? 0 : event.error(), flags == SA_RESTART ? 0 : EINTR);
      done = true;
    });
    while (!done && (handled < 3 || flags != SA_RESTART)) {  // it may not wait yet
      ::pthread_kill(waiter.native_handle(), SIGUSR1);
      let_it_sleep();
    }
    if (flags == SA_RESTART) {
      EXPECT_FALSE(done);
      pair.send();
    }
    waiter.join();
    if (flags == SA_RESTART) {
      EXPECT_EQ(pair.b.wait_for_completion().status, WQEStatus::kSuccess);
      pair.request_event();
    }
  }
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST_P(EventWaitTest, AfterACancelledWaitTheHelperReceives) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer loses a thread that is cancelled in poll(2), and its locks";
#endif
  WaitingPair pair;
  pair.request_event();
  pthread_t waiter{};
  const auto wait = [](void* self) -> void* {
    (void)static_cast<WaitingPair*>(self)->wait();
    return nullptr;
  };
  ASSERT_EQ(::pthread_create(&waiter, nullptr, wait, &pair), 0);
  let_it_sleep();
  ASSERT_EQ(::pthread_cancel(waiter), 0);
  void* result = nullptr;
  ASSERT_EQ(::pthread_join(waiter, &result), 0);
  EXPECT_EQ(result, PTHREAD_CANCELED);
  pair.send();
  pollfd channel{.fd = pair.target.queue().fd(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&channel, 1, 20'000), 1);
}

INSTANTIATE_TEST_SUITE_P(ThroughMemoryAndSockets, EventWaitTest, testing::Values("on", "off"));

}  // namespace
}  // namespace verbena::host
