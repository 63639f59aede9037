#include "fabric/crew.h"

namespace verbena::fabric {

Crew::Crew(u32 members, std::function<void(u32)> work) : work_(std::move(work)) {
  for (u32 member = 1; member < members; ++member)
    threads_.emplace_back([this, member] { stand_by(member); });
}

Crew::~Crew() {
  stops_ = true;
  ++round_;
  round_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Crew::wait_until_changed(const std::atomic<u32>& value, u32 from) {
  for (u32 look = 0; look < kLooks; ++look) {
    if (value.load(std::memory_order_acquire) != from) return;
    __builtin_ia32_pause();
  }
  value.wait(from, std::memory_order_acquire);
}

void Crew::stand_by(u32 member) {
  for (u32 round = 0;;) {
    wait_until_changed(round_, round);
    ++round;
    if (stops_) return;
    work_(member);
    if (working_.fetch_sub(1, std::memory_order_acq_rel) == 1) working_.notify_one();
  }
}

void Crew::run() {
  working_.store(static_cast<u32>(threads_.size()), std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  work_(0);
  for (u32 left; (left = working_.load(std::memory_order_acquire)) != 0;)
    wait_until_changed(working_, left);
}

}  // namespace verbena::fabric
