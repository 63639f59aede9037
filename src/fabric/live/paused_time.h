// PausedTime: for how long a NIC was paused by its switch, in any priority, from the pause frames
// that it received. IEEE 802.1Q, 36.1.
#pragma once

#include <algorithm>
#include <array>

#include "base/time.h"
#include "fabric/frame.h"

namespace verbena::fabric {

class PausedTime {
 public:
  // `lasts`: as the frame asks for; 0: the priority may be sent again.
  void on_pause(u32 priority, Duration lasts, Time now) {
    if (lasts != Duration{}) ++pauses_;
    const bool was_paused = until() > now;
    const Time end = until();
    until_[priority] = now + lasts;
    if (!was_paused) {
      total_ = total_ + (std::min(end, now) - since_);
      since_ = now;
    } else if (until() <= now) {
      total_ = total_ + (now - since_);
      since_ = now;
    }
  }
  [[nodiscard]] u64 pauses() const { return pauses_; }
  [[nodiscard]] Duration total(Time now) const {
    return total_ + std::max(std::min(until(), now) - since_, Duration{});
  }

 private:
  // The end of the last of them.
  [[nodiscard]] Time until() const { return *std::ranges::max_element(until_); }

  std::array<Time, kPriorities> until_{};
  Time since_;        // of the pause that goes on, or of the last one
  Duration total_{};  // of those before
  u64 pauses_ = 0;
};

}  // namespace verbena::fabric
