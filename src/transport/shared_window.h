// SharedWindow: the packets that all requesters of a device may have in flight together. Each has a
// window of its own, made for few requesters. With many, the peers' receive buffers would overflow;
// long before that, a packet would wait there for so long that silence looks like loss. So
// requesters with packets in flight share a number of packets evenly. Each may always have kLeast:
// a peer that is gone blocks nobody.
#pragma once

#include <algorithm>
#include <utility>

#include "base/types.h"

namespace verbena {

struct SharedWindow {
  static constexpr u32 kLeast = 4;

  u32 packets = ~0u;   // of all requesters
  u32 requesters = 0;  // number of those that have packets in flight
};

// The share of one requester.
class WindowShare {
 public:
  explicit WindowShare(SharedWindow* of) : of_(of) {}  // nullptr: no such limit
  WindowShare(const WindowShare&) = delete;
  WindowShare& operator=(const WindowShare&) = delete;
  ~WindowShare() { note(false); }

  void note(bool has_in_flight) {
    if (of_ == nullptr || std::exchange(counted_, has_in_flight) == has_in_flight) return;
    has_in_flight ? ++of_->requesters : --of_->requesters;
  }
  // Returns how many packets the requester may have in flight, at most `most`.
  [[nodiscard]] u32 packets(u32 most) const {
    if (of_ == nullptr) return most;
    const u32 requesters = std::max(of_->requesters, 1u);
    if (u64{most} * requesters <= of_->packets) return most;  // the usual case, without a division
    return std::min(most, std::max(of_->packets / requesters, SharedWindow::kLeast));
  }

 private:
  SharedWindow* const of_;
  bool counted_ = false;
};

}  // namespace verbena
