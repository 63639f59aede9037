#include "host/progress/helper_thread.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "host/os/clock.h"

namespace verbena::host {
namespace {

constexpr std::size_t kStackBytes = 1 << 20;  // of address space; touched as needed

bool add_to(const Descriptor& poll, int fd, u32 events) {
  epoll_event event{.events = events, .data = {.fd = fd}};
  return ::epoll_ctl(poll.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

}  // namespace

Expected<std::unique_ptr<HelperThread>> HelperThread::start(std::span<const int> descriptors,
                                                            Work work) {
  std::unique_ptr<HelperThread> helper(new HelperThread(std::move(work)));
  const int error = helper->open(descriptors) ? helper->create_thread() : errno;
  if (error != 0)
    return failure(error, std::string("cannot start a helper thread: ") + std::strerror(error));
  return helper;
}

bool HelperThread::open(std::span<const int> descriptors) {
  link_poll_ = Descriptor(::epoll_create1(EPOLL_CLOEXEC));
  poll_ = Descriptor(::epoll_create1(EPOLL_CLOEXEC));
  timer_ = Descriptor(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  stop_ = Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!link_poll_.is_open() || !poll_.is_open() || !timer_.is_open() || !stop_.is_open())
    return false;
  for (const int fd : descriptors)
    if (!add_to(link_poll_, fd, EPOLLIN)) return false;
  return add_to(poll_, link_poll_.get(), EPOLLIN) && add_to(poll_, timer_.get(), EPOLLIN) &&
         add_to(poll_, stop_.get(), EPOLLIN);
}

// The thread takes no signals, which are the application's, but the faults of its own accesses:
// host/os/memory_faults.h.
int HelperThread::create_thread() {
  sigset_t all, before;
  ::sigfillset(&all);
  ::sigdelset(&all, SIGSEGV);
  ::sigdelset(&all, SIGBUS);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = pthread_create(
      &thread_, &attributes,
      [](void* self) -> void* {
        static_cast<HelperThread*>(self)->run();
        return nullptr;
      },
      this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  running_ = error == 0;
  if (running_) pthread_setname_np(thread_, "verbena");
  return error;
}

void HelperThread::stop() {
  if (!running_) return;
  running_ = false;
  stopping_.store(true, std::memory_order_relaxed);
  const u64 one = 1;
  (void)!::write(stop_.get(), &one, sizeof(one));
  pthread_join(thread_, nullptr);
}

void HelperThread::run() {
  if (work_.begin) work_.begin();
  sleep_and_serve();
  if (work_.end) work_.end();
}

void HelperThread::sleep_and_serve() {
  std::array<epoll_event, 4> events;
  while (!is_stopping()) {
    const int ready = ::epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()), -1);
    if (ready < 0 && errno != EINTR) return;  // the application has closed our descriptors
    if (ready <= 0) continue;
    bool due = false;
    for (int i = 0; i < ready; ++i) due |= handle(events[static_cast<std::size_t>(i)].data.fd);
    if (!due || is_stopping()) continue;
    wakeups_.fetch_add(1, std::memory_order_relaxed);
    work_.serve();
  }
}

// Whether it is something to serve the link or the timers for.
bool HelperThread::handle(int fd) {
  if (fd == watched_.load(std::memory_order_acquire)) {
    answer_();
    return false;
  }
  u64 expirations = 0;
  if (fd == timer_.get() &&
      ::read(timer_.get(), &expirations, sizeof(expirations)) == sizeof(expirations))
    alarm_ps_.store(Time::never().ps(), std::memory_order_relaxed);
  return true;
}

void HelperThread::watch(int fd, std::function<void()> answer) {
  answer_ = std::move(answer);
  watched_.store(fd, std::memory_order_release);
  (void)add_to(poll_, fd, EPOLLIN);
}

void HelperThread::watch_link(u32 events) {
  epoll_event event{.events = events, .data = {.fd = link_poll_.get()}};
  (void)::epoll_ctl(poll_.get(), EPOLL_CTL_MOD, link_poll_.get(), &event);
}

void HelperThread::listen() {
  if (listens_) return;
  listens_ = true;
  watch_link(EPOLLIN);
}

void HelperThread::ignore() {
  if (!listens_) return;
  listens_ = false;
  watch_link(0);
}

Time HelperThread::wake_at(Time when, Time now) {
  const Time set_to = Time::from_ps(alarm_ps_.load(std::memory_order_relaxed));
  if (will_do(set_to, when, now)) return set_to;
  alarm_ps_.store(when.ps(), std::memory_order_relaxed);
  itimerspec alarm{.it_interval = {}, .it_value = to_timespec(when)};
  if (alarm.it_value.tv_sec == 0 && alarm.it_value.tv_nsec == 0) alarm.it_value.tv_nsec = 1;
  (void)::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &alarm, nullptr);
  return when;
}

void HelperThread::abandon() {
  running_ = false;
  for (Descriptor* d : {&link_poll_, &poll_, &timer_, &stop_}) d->reset();
}

}  // namespace verbena::host
