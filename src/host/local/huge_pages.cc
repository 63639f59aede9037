#include "host/local/huge_pages.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <optional>

#include "host/local/settling_memory.h"
#include "host/os/clock.h"

namespace verbena::host {
namespace {

constexpr int kCollapse = 25;       // MADV_COLLAPSE, which older headers lack
constexpr u64 kMaxHugePages = 128;  // in a call: a registration is not to take a second

void collapse(u64 begin, u64 count) {
  (void)::madvise(reinterpret_cast<void*>(begin), count * kHugePage, kCollapse);
}

// The longest time that new memory waits for a thread that sleeps until other memory has settled.
constexpr Duration kLook = ms(5);

// Waiting: the memory that waits, and the process whose thread serves it (0: none). Never
// destroyed: that thread may outlive main().
struct Waiting {
  std::mutex mutex;
  SettlingMemory memory;
  pid_t served_by = 0;
};

Waiting& waiting() {
  static Waiting* const instance = new Waiting;
  return *instance;
}

// Next: the memory to serve now, or the time to look again. If that is never(), no thread serves
// any more.
struct Next {
  std::optional<std::span<const u8>> memory;
  Time until;
};

Next next_of(Waiting& from, Time now) {
  const std::lock_guard lock(from.mutex);
  Next next{from.memory.take(now), from.memory.next()};
  if (!next.memory && next.until == Time::never()) from.served_by = 0;
  return next;
}

void* serve_waiting(void*) {
  for (;;) {
    const Time now = monotonic_now();
    const Next next = next_of(waiting(), now);
    if (next.memory)
      give_huge_pages(*next.memory);
    else if (next.until == Time::never())
      return nullptr;
    else
      sleep_for(std::min(next.until - now, kLook));
  }
}

// The program's signals are for its own threads.
bool start_thread() {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread{};
  const bool started = ::pthread_create(&thread, nullptr, serve_waiting, nullptr) == 0;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (started) ::pthread_detach(thread);
  return started;
}

}  // namespace

// Those at the ends reach beyond the memory: they make a program at most 2 MiB larger.
HugePages huge_pages_of(std::span<const u8> memory) {
  const u64 first = reinterpret_cast<u64>(memory.data()), end = first + memory.size();
  const u64 from = (first + kHugePage / 2) & ~(kHugePage - 1);
  const u64 to = (end + kHugePage / 2) & ~(kHugePage - 1);
  const bool has_half = memory.size() >= kHugePage / 2 && to > from;
  return has_half ? HugePages{from, std::min((to - from) / kHugePage, kMaxHugePages)} : HugePages{};
}

// The first and the last on their own: they may be in no mapping as a whole, which fails a call.
void give_huge_pages(std::span<const u8> memory) {
  const HugePages pages = huge_pages_of(memory);
  if (pages.count == 0) return;
  collapse(pages.begin, 1);
  if (pages.count > 2) collapse(pages.begin + kHugePage, pages.count - 2);
  if (pages.count > 1) collapse(pages.begin + (pages.count - 1) * kHugePage, 1);
}

void give_huge_pages_soon(std::span<const u8> memory) {
  if (huge_pages_of(memory).count == 0) return;
  const std::unique_lock lock(waiting().mutex, std::try_to_lock);  // held for ever after some forks
  if (!lock.owns_lock()) return;
  waiting().memory.add(memory, monotonic_now());
  if (waiting().served_by == ::getpid()) return;
  if (start_thread()) waiting().served_by = ::getpid();
}

}  // namespace verbena::host
