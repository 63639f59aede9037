// FrameQueue: held frames by the time at which they are due; frames of one time in order of
// arrival.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "faults/held_frame.h"

namespace verbena::faults {

class FrameQueue {
 public:
  void push(Time due, HeldFrame frame) {
    heap_.push_back({due, next_++, std::move(frame)});
    std::ranges::push_heap(heap_, later);
  }
  [[nodiscard]] Time next_due() const { return heap_.empty() ? Time::never() : heap_.front().due; }
  // Returns the first frame that is due; nullopt if there is none.
  [[nodiscard]] std::optional<HeldFrame> pop(Time now) {
    if (heap_.empty() || heap_.front().due > now) return std::nullopt;
    std::ranges::pop_heap(heap_, later);
    HeldFrame frame = std::move(heap_.back().frame);
    heap_.pop_back();
    return frame;
  }
  [[nodiscard]] std::size_t size() const { return heap_.size(); }

 private:
  struct Entry {
    Time due;
    u64 number;
    HeldFrame frame;
  };
  static bool later(const Entry& a, const Entry& b) {
    return a.due != b.due ? a.due > b.due : a.number > b.number;
  }
  std::vector<Entry> heap_;
  u64 next_ = 0;
};

}  // namespace verbena::faults
