// PauseState: when one end of a link may not send, as the pause frames that it receives have it.
// IEEE 802.1Q 36 (PFC).
#pragma once

#include <algorithm>
#include <optional>

#include "base/time.h"

namespace verbena::fabric {

struct TimeSpan {
  Time begin, end;
  [[nodiscard]] Duration length() const { return std::max(end - begin, Duration()); }
};

class PauseState {
 public:
  // A frame for a priority; `time`: for which it pauses, 0: it ends the pause. Returns the span
  // that is over with it, in which one priority or more were paused.
  [[nodiscard]] std::optional<TimeSpan> on_frame(u32 priority, Duration time, Time now) {
    const u8 bit = static_cast<u8>(1u << priority);
    const bool ends = time == Duration();
    std::optional<TimeSpan> over;
    if (priorities_ != 0 && (now >= until_ || (ends && priorities_ == bit))) over = finish(now);
    if (ends) {
      priorities_ &= static_cast<u8>(~bit);
      return over;
    }
    if (priorities_ == 0) since_ = now;
    priorities_ |= bit;
    until_ = std::max(until_, now + time);
    return over;
  }
  // Nothing after `now` counts.
  [[nodiscard]] std::optional<TimeSpan> finish(Time now) {
    if (priorities_ == 0) return std::nullopt;
    priorities_ = 0;
    return TimeSpan{since_, std::min(now, until_)};
  }

 private:
  Time since_{}, until_{};
  u8 priorities_ = 0;  // a bit each
};

}  // namespace verbena::fabric
