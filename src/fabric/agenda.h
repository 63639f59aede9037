// Agenda: the events of one window for nodes that are simulated together, in their order: what was
// known when it began, sorted once, and what they add to it, in a small heap.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "fabric/event.h"

namespace verbena::fabric {

class Agenda {
 public:
  static constexpr u32 kMaxWindowBits = 21;  // of picoseconds: 2.1 us

  // `events` lie in the window that starts at `start`, and stay until the end. The last agenda has
  // ended.
  void begin(Time start, std::span<const Event> events);
  // At or after the event taken last: what would be earlier happens at its time.
  void add(Event event);
  // false: no event is left, or the next is after `end`.
  [[nodiscard]] bool take(Time end, Event& out) {
    const bool from_heap = comes_from_heap();
    if (!from_heap && next_ == sorted_.size()) return false;
    out = from_heap ? added_.front().event : events_[sorted_[next_].index];
    if (out.at > end) return false;
    last_ = out.at;
    if (from_heap) {
      std::ranges::pop_heap(added_, comes_after);
      added_.pop_back();
    } else {
      ++next_;
    }
    return true;
  }
  // Hands what is left to visit(event), equal ones in the order of adding, and ends.
  template <typename Visit>
  void end(const Visit& visit) {
    for (; next_ != sorted_.size(); ++next_) visit(events_[sorted_[next_].index]);
    std::ranges::sort(added_, {}, &Added::order);
    for (const Added& added : added_) visit(added.event);
    added_.clear();
  }
  // The event that will be taken after `n` others of those known at first; nullptr: there is none.
  [[nodiscard]] const Event* ahead(u32 n) const {
    return next_ + n < sorted_.size() ? &events_[sorted_[next_ + n].index] : nullptr;
  }

 private:
  struct Entry {
    u32 since_start;  // in picoseconds
    u32 index;        // in events_
  };
  struct Added {
    Event event;
    u64 order;  // of adding, for equal ones
  };

  static bool comes_before(const Event& a, const Event& b) {
    if (a.at != b.at) return a.at < b.at;
    if (a.kind() != b.kind()) return a.kind() < b.kind();
    return a.rank != b.rank ? a.rank < b.rank : a.what < b.what;
  }
  static bool comes_after(const Added& a, const Added& b) {
    if (comes_before(a.event, b.event)) return false;
    return comes_before(b.event, a.event) || b.order < a.order;
  }
  bool comes_from_heap() const {
    return !added_.empty() && (next_ == sorted_.size() ||
                               comes_before(added_.front().event, events_[sorted_[next_].index]));
  }
  void sort();
  void sort_by_time();
  void sort_equal_times();

  std::span<const Event> events_;
  std::vector<Entry> sorted_;
  std::size_t next_ = 0;      // in it
  std::vector<Added> added_;  // a heap
  u64 adds_ = 0;
  Time last_;  // of the event taken last
  std::vector<Entry> spare_;
};

}  // namespace verbena::fabric
