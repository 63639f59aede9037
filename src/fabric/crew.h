// Crew: threads that do one piece of work at the same time, each its own part, and wait for each
// other at its end. The caller is one of them.
#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "base/types.h"

namespace verbena::fabric {

class Crew {
 public:
  // `work(i)` is the work of member i, below `members`; it may not throw.
  Crew(u32 members, std::function<void(u32)> work);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // Runs all of them once. They see the caller's earlier writes, and the caller sees theirs
  // afterwards.
  void run();

 private:
  // How often a member looks before it sleeps: longer than the others' share usually takes.
  static constexpr u32 kLooks = 4000;

  void stand_by(u32 member);
  static void wait_until_changed(const std::atomic<u32>& value, u32 from);

  const std::function<void(u32)> work_;
  alignas(64) std::atomic<u32> round_{0};
  alignas(64) std::atomic<u32> working_{0};
  std::atomic<bool> stops_{false};
  std::vector<std::thread> threads_;
};

}  // namespace verbena::fabric
