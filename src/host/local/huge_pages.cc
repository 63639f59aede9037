#include "host/local/huge_pages.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <mutex>
#include <vector>

namespace verbena::host {
namespace {

constexpr int kCollapse = 25;       // MADV_COLLAPSE, which older headers lack
constexpr u64 kMaxHugePages = 128;  // in a call: a registration is not to take a second

void collapse(u64 begin, u64 count) {
  (void)::madvise(reinterpret_cast<void*>(begin), count * kHugePage, kCollapse);
}

constexpr std::size_t kMaxWaiting = 64;

// What waits, and whether a thread is at it. Never destroyed: that thread may outlive main().
struct Waiting {
  std::mutex mutex;
  std::vector<std::span<const u8>> memory;
  bool is_served = false;
};

Waiting& waiting() {
  static Waiting* const instance = new Waiting;
  return *instance;
}

void* serve_waiting(void*) {
  for (;;) {
    std::span<const u8> next;
    {
      const std::lock_guard lock(waiting().mutex);
      waiting().is_served = !waiting().memory.empty();
      if (!waiting().is_served) return nullptr;
      next = waiting().memory.back();
      waiting().memory.pop_back();
    }
    give_huge_pages(next);
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
  if (!lock.owns_lock() || waiting().memory.size() >= kMaxWaiting) return;
  waiting().memory.push_back(memory);
  if (!waiting().is_served) waiting().is_served = start_thread();
}

}  // namespace verbena::host
