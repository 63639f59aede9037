#include "abi/rdmacm/late_readers.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace verbena::rdmacm {
namespace {

constexpr std::size_t kKept = 8;
constexpr std::chrono::milliseconds kPatience{100}, kStep{1};

// Never destroyed: threads may outlive main().
struct Retired {
  std::mutex mutex;
  std::array<std::unique_ptr<ChannelObject>, kKept> channels;
  std::size_t next = 0;
};

Retired& retired() {
  static Retired* const instance = new Retired;
  return *instance;
}

std::atomic<bool> process_ends = false;
thread_local bool this_thread_ends_it = false;

bool ends_elsewhere() { return process_ends && !this_thread_ends_it; }

// Exit handlers run in the reverse of their order: this one before all that were installed earlier.
void watch_for_exit() {
  static std::once_flag installed;
  std::call_once(installed, [] {
    std::atexit([] {
      this_thread_ends_it = true;
      process_ends = true;
    });
  });
}

}  // namespace

void retire(std::unique_ptr<ChannelObject> channel) {
  watch_for_exit();
  channel->close();
  const std::lock_guard lock(retired().mutex);
  retired().channels[retired().next++ % kKept] = std::move(channel);
}

void wait_for_end_of_process() {
  for (auto waited = kStep; waited < kPatience && !process_ends; waited += kStep)
    std::this_thread::sleep_for(kStep);
  while (ends_elsewhere()) ::pause();
}

}  // namespace verbena::rdmacm
