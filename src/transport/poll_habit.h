// PollHabit: whether a program that has posted some WRITEs to a peer of this host soon polls. If
// so, they may wait for that and be copied together (rc/short_cut.cc); if not, the peer may be
// waiting in its memory for them.
//
// A run is what is posted between two polls. Its first WRITE never waits: programs that take turns
// have one in each. The others do after some runs, and as long as what waits is done soon after the
// last post: no later than its copy itself would take, and a little. More than a little where the
// program goes on posting, which loses its core for a moment or sets an alarm. To be late now and
// then is forgiven where four times as many runs were not, or, where a post was late, many posts.
// Otherwise the program has to earn it again, with twice as many runs. So a program that posts runs
// and does not poll loses little: it waits seldom, and for kPutOff (engine.h) at most.
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
  static constexpr u32 kLate = 4, kMostCredit = 16;  // in runs
  static constexpr u32 kManyPosts = 64;

  enum class End : u8 { kPoll, kPost, kAlarm };  // what ends the waiting

  // After the last post.
  [[nodiscard]] static constexpr Duration soon(End end, u64 waiting_bytes) {
    return (end == End::kPoll ? us(4) : us(20)) + kPerByte * static_cast<i64>(waiting_bytes);
  }
  void on_poll() { polled_ = true; }

  // A WRITE has its turn. May it wait?
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
  // What was posted last waits until now. True: as long as it should, at most.
  bool on_waited(End end, Time now, u64 waiting_bytes) {
    if (now - last_ <= soon(end, waiting_bytes + copied_bytes_)) return true;
    const bool is_forgiven = end == End::kPost && posts_ >= kManyPosts;
    posts_ = 0;
    if (!is_forgiven) on_late();
    return false;
  }
  // Meanwhile, or what took as long: to wait for that is no fault of the program.
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
    is_run_ = false;  // it does not count
    if (credit_ >= kLate) {
      credit_ -= kLate;
      return;
    }
    runs_ = credit_ = 0;
    needed_ = std::min(needed_ * 2, kMostRuns);
  }

  bool polled_ = true;             // since the last WRITE
  bool is_run_ = false;            // there has been more than one
  u32 runs_ = 0, needed_ = kRuns;  // until some may wait
  u32 credit_ = 0;
  u32 posts_ = 0;  // since one was late
  Time last_;
  u64 copied_bytes_ = 0;  // since
};

}  // namespace verbena
