#include "host/events/event_queue.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>
#include <vector>

namespace verbena::host {
namespace {

using Queue = EventQueue<int>;

std::unique_ptr<Queue> make_queue() { return std::move(*Queue::create()); }

bool is_readable(const Queue& queue) {
  pollfd state{.fd = queue.fd(), .events = POLLIN, .revents = 0};
  return ::poll(&state, 1, 0) == 1;
}

void set_nonblocking(const Queue& queue) {
  ASSERT_EQ(::fcntl(queue.fd(), F_SETFL, ::fcntl(queue.fd(), F_GETFL) | O_NONBLOCK), 0);
}

TEST(EventQueueTest, FirstInFirstOut) {
  const auto queue = make_queue();
  EXPECT_FALSE(is_readable(*queue));
  for (int i = 0; i < 100; ++i) queue->push(i);
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(is_readable(*queue));
    EXPECT_EQ(queue->pop(), i);
  }
  EXPECT_FALSE(is_readable(*queue));
}

TEST(EventQueueTest, EmptyAndNonBlockingIsEAGAIN) {
  const auto queue = make_queue();
  set_nonblocking(*queue);
  EXPECT_EQ(queue->pop().error(), EAGAIN);
  queue->push(7);
  EXPECT_EQ(queue->pop(), 7);
  EXPECT_EQ(queue->pop().error(), EAGAIN);
}

TEST(EventQueueTest, PopWaitsForAPush) {
  const auto queue = make_queue();
  std::thread pusher([&] { queue->push(42); });
  EXPECT_EQ(queue->pop(), 42);
  pusher.join();
}

TEST(EventQueueTest, ASignalEndsAWait) {
  struct sigaction action {};
  action.sa_handler = [](int) {};  // without SA_RESTART
  struct sigaction before {};
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  const auto queue = make_queue();
  std::atomic<bool> done = false;
  std::thread popper([&] {
    EXPECT_EQ(queue->pop().error(), EINTR);
    done = true;
  });
  while (!done) {  // it may not wait yet
    ::pthread_kill(popper.native_handle(), SIGUSR1);
    ::poll(nullptr, 0, 1);
  }
  popper.join();
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST(EventQueueTest, RemovedEventsAreNotHeardOf) {
  const auto queue = make_queue();
  set_nonblocking(*queue);
  for (int i = 0; i < 6; ++i) queue->push(i);
  EXPECT_EQ(queue->remove_if([](int i) { return i % 2 == 0; }), 3u);
  for (const int left : {1, 3, 5}) EXPECT_EQ(queue->pop(), left);
  EXPECT_FALSE(is_readable(*queue));
  EXPECT_EQ(queue->remove_if([](int) { return true; }), 0u);
}

TEST(EventQueueTest, AnAwaitedEventNeedsNoDescriptor) {
  const auto queue = make_queue();
  queue->await();
  queue->push(1);
  EXPECT_FALSE(is_readable(*queue));
  queue->push(2);
  EXPECT_TRUE(is_readable(*queue)) << "one only is awaited";
  EXPECT_EQ(queue->take_awaited(), 1);
  EXPECT_EQ(queue->pop(), 2);
  EXPECT_FALSE(is_readable(*queue));
  queue->push(3);
  EXPECT_TRUE(is_readable(*queue)) << "nobody awaits it any more";
  EXPECT_EQ(queue->pop(), 3);

  queue->await();
  queue->push(4);
  EXPECT_EQ(queue->remove_if([](int) { return true; }), 1u);
  EXPECT_EQ(queue->take_awaited(), std::nullopt);
  EXPECT_TRUE(queue->blocks());
  set_nonblocking(*queue);
  EXPECT_FALSE(queue->blocks());
  EXPECT_EQ(queue->pop().error(), EAGAIN);
}

// Notes when two threads move events at the same time. A move takes long, so that they meet.
struct SlowEvent {
  SlowEvent() = default;
  SlowEvent(SlowEvent&&) noexcept {
    if (++moving != 1) overlapped = true;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    --moving;
  }
  SlowEvent& operator=(SlowEvent&&) noexcept = default;
  static inline std::atomic<int> moving = 0;
  static inline std::atomic<bool> overlapped = false;
};

TEST(EventQueueTest, OneThreadAtATimePushes) {
  const auto queue = std::move(*EventQueue<SlowEvent>::create());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) queue->push(SlowEvent());
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(SlowEvent::overlapped);
}

TEST(EventQueueTest, ManyThreadsGetEachEventOnce) {
  const auto queue = make_queue();
  constexpr int kEvents = 2000;
  std::atomic<int> sum = 0, count = 0;
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      while (count.fetch_add(1) < kEvents) sum += queue->pop().value();
    });
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < kEvents / 2; ++i) queue->push(1);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum, kEvents);
  EXPECT_FALSE(is_readable(*queue));
}

}  // namespace
}  // namespace verbena::host
