// PollHabit: whether a program that has posted some long WRITEs to a peer of this host soon polls.
// If so, they may wait for that and be copied together (rc/short_cut.cc); if not, the peer may be
// waiting in its memory for them.
//
// A run is what is posted between two polls. Its first WRITE never waits: programs that take turns
// have one in each. The others do after some runs, and as long as what waits is done within
// microseconds of the last post. Where it once was not, the program has to earn it again, with
// twice as many runs. So a program that posts runs and does not poll loses little: it waits seldom,
// and for kPutOff (engine.h) at most.
//
// Of a program, so one for a device: each poll has all done that waits, of whichever QP.
// Pure logic: no clock. Not thread-safe.
#pragma once

#include <algorithm>
#include <utility>

#include "base/time.h"

namespace verbena {

class PollHabit {
 public:
  static constexpr u32 kRuns = 2;  // to begin with
  static constexpr u32 kMostRuns = 1024;
  static constexpr u32 kForgiving = 64;  // runs, until half as many would do
  static constexpr Duration kSoon = us(20);

  void on_poll() { polled_ = true; }

  // A long WRITE has its turn. May it wait?
  [[nodiscard]] bool may_wait(Time now) {
    if (std::exchange(polled_, false)) {
      if (is_run_) on_run();
      is_run_ = false;
    } else {
      is_run_ = true;
    }
    last_ = now;
    copied_bytes_ = 0;
    return is_run_ && runs_ >= needed_;
  }
  // What was posted last waits until now. True: as long as it should, at most.
  bool on_waited(Time now) {
    if (now - last_ <= kSoon + kPerByte * static_cast<i64>(copied_bytes_)) return true;
    is_run_ = false;  // it does not count
    runs_ = 0;
    needed_ = std::min(needed_ * 2, kMostRuns);
    return false;
  }
  // Meanwhile: to wait for that is no fault of the program.
  void on_copied(u64 bytes) { copied_bytes_ += bytes; }

 private:
  static constexpr Duration kPerByte = Duration::from_ps(250);  // a slow copy

  void on_run() {
    if (++runs_ < needed_ + kForgiving) return;
    needed_ = std::max(needed_ / 2, kRuns);
    runs_ = needed_;
  }

  bool polled_ = true;   // since the last long WRITE
  bool is_run_ = false;  // there has been more than one
  u32 runs_ = 0, needed_ = kRuns;
  Time last_;
  u64 copied_bytes_ = 0;  // since
};

}  // namespace verbena
