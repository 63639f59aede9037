// FetchAhead: loads the state that the next frames of a batch need into the cache, while the frame
// before them is executed. With many QPs their state is in no near cache, and each step of the path
// to it (table, QP, engine) would stall. Frames that follow each other to one QP cost nothing.
#pragma once

#include <algorithm>
#include <array>

#include "device/device.h"

namespace verbena::host {

class FetchAhead {
 public:
  static constexpr u32 kFrames = 3;  // the steps of Device::fetch() after the first

  // A frame has been polled, and the one kFrames after it is for `qpn`; 0: that is not known.
  void fetch(const Device& device, QPN qpn) {
    const QPN last = next_[0], next = qpn == QPN{} ? last : qpn;
    if (next != last) steps_left_ = kFrames + 1;
    if (steps_left_ == 0) return;
    --steps_left_;
    std::ranges::rotate(next_, next_.end() - 1);
    next_[0] = next;
    for (u32 step = 1; step <= kFrames; ++step)
      if (next_[step - 1] != next_[step]) device.fetch(step, next_[step - 1]);
  }

 private:
  std::array<QPN, kFrames + 1> next_{};  // the farthest first; the last was polled just now
  u32 steps_left_ = 0;                   // until all of them are the same
};

}  // namespace verbena::host
