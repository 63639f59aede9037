// PollHabit: predicts whether a program that has posted some WRITEs to a peer of this host soon
// polls. If so, the WRITEs may wait for the poll and be copied together (rc/local_copies.h). If
// not, the peer may be waiting in its memory for them.
//
// A run is the sequence of WRITEs between two polls. The first WRITE of a run never waits: programs
// that take turns have one WRITE in each run. The others may wait after some runs, as long as
// waiting WRITEs are copied soon after the last post: within the time of the copy itself plus a
// margin. The margin is larger if the program continues to post, because it may lose its core for a
// moment or set an alarm. A late copy is forgiven after four times as many runs that were not late,
// or, if a post was late, after many posts. Otherwise the program must earn the trust again, with
// twice as many runs. So a program that posts runs and does not poll loses little: its WRITEs wait
// seldom, and at most for kDeferral (engine.h).
//
// A habit of a program, so a device has one: each poll copies all that waits, of any QP.
// Pure logic: no clock. Not thread-safe.
#pragma once

#include <algorithm>
#include <utility>

#include "base/time.h"

namespace verbena {

class PollHabit {
 public:
  static constexpr u32 kRuns = 2;  // at first
  static constexpr u32 kMostRuns = 1024;
  static constexpr u32 kLate = 4, kMostCredit = 16;  // in runs
  static constexpr u32 kManyPosts = 64;

  enum class End : u8 { kPoll, kPost, kAlarm };  // the end of the wait

  // Returns the longest wait after the last post.
  [[nodiscard]] static constexpr Duration soon(End end, u64 waiting_bytes) {
    return (end == End::kPoll ? us(4) : us(20)) + kPerByte * static_cast<i64>(waiting_bytes);
  }
  void on_poll() { polled_ = true; }

  // A WRITE has its turn. Returns whether it may wait.
  [[nodiscard]] bool may_wait(Time now) {
    if (std::exchange(polled_, false)) {
      if (is_run_) on_run();
      is_run_ = false;
    } else {
      is_run_ = true;
    }
    last_ = now;
    copied_bytes_ = 0;
    ++posts_;
    return is_run_ && runs_ >= needed_;
  }
  // The WRITE posted last waits until now. Returns true if that is not too long.
  bool on_waited(End end, Time now, u64 waiting_bytes) {
    if (now - last_ <= soon(end, waiting_bytes + copied_bytes_)) return true;
    const bool is_forgiven = end == End::kPost && posts_ >= kManyPosts;
    posts_ = 0;
    if (!is_forgiven) on_late();
    return false;
  }
  // Bytes that were copied meanwhile, or that took as long: waiting for them is no fault of the
  // program.
  void on_copied(u64 bytes) { copied_bytes_ += bytes; }

 private:
  static constexpr Duration kPerByte = Duration::from_ps(250);  // a slow copy

  void on_run() {
    if (runs_ < needed_) {
      ++runs_;
      return;
    }
    credit_ = std::min(credit_ + 1, kMostCredit);
    if (credit_ == kMostCredit) needed_ = runs_ = kRuns;
  }
  void on_late() {
    is_run_ = false;  // the run does not count
    if (credit_ >= kLate) {
      credit_ -= kLate;
      return;
    }
    runs_ = credit_ = 0;
    needed_ = std::min(needed_ * 2, kMostRuns);
  }

  bool polled_ = true;             // since the last WRITE
  bool is_run_ = false;            // it has more than one WRITE
  u32 runs_ = 0, needed_ = kRuns;  // runs until some WRITEs may wait
  u32 credit_ = 0;
  u32 posts_ = 0;  // since a late one
  Time last_;
  u64 copied_bytes_ = 0;  // since the last post
};

}  // namespace verbena
