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

  // `events` lie in the window from `start` on, and stay until the end. The last agenda has ended.
  void begin(Time start, Duration length, std::span<const Event> events);
  // Adds an event at or after the event taken last; an earlier one happens at the time of that
  // event. (In parts, which stay in registers: reading as a whole what was just written in parts is
  // slow.)
  void add(const Event& event) { insert(event.at, event.what, event.subject, event.rank); }
  // Returns false if no event is left, or if the next one is after `end`.
  [[nodiscard]] bool take(Time end, Event& out) {
    const bool is_added = next_is_added();
    if (!is_added && next_ == events_.size()) return false;
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
    for (; next_ != events_.size(); ++next_) visit(events_[sorted_[next_].index]);
    for (; next_added_ != end_of_added_; ++next_added_) visit(added_[next_added_]);
  }
  // Returns the event that follows `n` others of those known at first; nullptr if there is none.
  [[nodiscard]] const Event* ahead(u32 n) const {
    return next_ + n < events_.size() ? &events_[sorted_[next_ + n].index] : nullptr;
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
    return next_added_ != end_of_added_ &&
           (next_ == events_.size() ||
            comes_before(added_[next_added_], events_[sorted_[next_].index]));
  }
  void insert(Time at, u32 what, u32 subject, u64 rank);
  Entry entry_of(u32 index) const {
    return {static_cast<u32>((events_[index].at - start_).ps()), index};
  }
  void sort_many();
  void sort_few(u32 bits_of_times);
  bool insert_each();
  void sort_equal_times();

  std::span<const Event> events_;
  Time start_;                 // of the window
  std::vector<Entry> sorted_;  // as many as events_, and what is left of longer ones
  std::size_t next_ = 0;       // in it
  std::vector<Event> added_;   // equal ones in the order of adding; and room
  std::size_t next_added_ = 0, end_of_added_ = 0;
  Time last_;  // of the event taken last
  std::vector<Entry> spare_;
};

}  // namespace verbena::fabric
