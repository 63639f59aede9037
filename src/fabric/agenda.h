// Agenda: the events of one window for nodes that are simulated together, in their order: what was
// known when it began, sorted once, and what they add to it. That is little at a time, and most of
// it comes after what was added before (ports that are to be woken): a sorted row, from its end.
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
  // At or after the event taken last: what would be earlier happens at its time. (In parts, which
  // stay in registers: to read as a whole what has just been written in parts takes long.)
  void add(const Event& event) { insert(event.at, event.what, event.subject, event.rank); }
  // false: no event is left, or the next is after `end`.
  [[nodiscard]] bool take(Time end, Event& out) {
    const bool is_added = next_is_added();
    if (!is_added && next_ == sorted_.size()) return false;
    const Event& event = is_added ? added_[next_added_] : events_[sorted_[next_].index];
    if (event.at > end) return false;
    out = event;
    last_ = event.at;
    next_ += is_added ? 0 : 1;
    next_added_ += is_added ? 1 : 0;
    return true;
  }
  // Hands what is left to visit(event), equal ones in the order of adding, and ends.
  template <typename Visit>
  void end(const Visit& visit) {
    for (; next_ != sorted_.size(); ++next_) visit(events_[sorted_[next_].index]);
    for (; next_added_ != added_.size(); ++next_added_) visit(added_[next_added_]);
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

  static bool comes_before(const Event& a, const Event& b) {
    if (a.at != b.at) return a.at < b.at;
    if (a.kind() != b.kind()) return a.kind() < b.kind();
    return a.rank != b.rank ? a.rank < b.rank : a.what < b.what;
  }
  bool next_is_added() const {
    return next_added_ != added_.size() &&
           (next_ == sorted_.size() ||
            comes_before(added_[next_added_], events_[sorted_[next_].index]));
  }
  void insert(Time at, u32 what, u32 subject, u64 rank);
  void sort();
  void sort_many();
  void sort_few();
  void sort_equal_times();

  std::span<const Event> events_;
  std::vector<Entry> sorted_;
  std::size_t next_ = 0;      // in it
  std::vector<Event> added_;  // equal ones in the order of adding
  std::size_t next_added_ = 0;
  Time last_;           // of the event taken last
  u32 times_bits_ = 0;  // the longest time in sorted_ has so many
  std::vector<Entry> spare_;
};

}  // namespace verbena::fabric
