// EventQueue: the events to come, in their order. A calendar of short days for the near future,
// where nearly all events lie (a frame arrives after one link delay), and a heap for what is later.
// R. Brown, "Calendar Queues", CACM 31(10), 1988.
//
// A day is sorted when it begins; what is added to the running day goes to its place. Days are
// lists of small blocks that go from day to day, so that the memory in use is that of the events in
// flight. No allocation while their number does not exceed what it was.
#pragma once

#include <array>
#include <vector>

#include "fabric/event.h"

namespace verbena::fabric {

class EventQueue {
 public:
  // `day`: how long one lasts; rounded up to a power of two of picoseconds.
  explicit EventQueue(Duration day);

  void add(const Event& event);  // at or after the event taken last
  // false: no event is left, or the next is after `end`.
  [[nodiscard]] bool take(Time end, Event& out) {
    if (next_ == today_.size() && !begin_next_day()) return false;
    if (today_[next_].at > end) return false;
    out = today_[next_++];
    return true;
  }
  // When a day has just begun: visit(event) for the first events of the next, in no order, so that
  // what they need can be fetched into the cache.
  template <typename Visit>
  void look_ahead(const Visit& visit) const {
    if (next_ != 1 || size_ == late_.size()) return;
    const Block& block = blocks_[days_[next_busy_day() % kDays].first];
    for (u32 i = 0; i < block.used; ++i) visit(block.events[i]);
  }
  [[nodiscard]] bool empty() const { return size_ == 0 && next_ == today_.size(); }

 private:
  static constexpr u32 kDays = 8192;  // that the calendar shows
  static constexpr u32 kNone = ~u32{0};
  struct Block {
    static constexpr u32 kEvents = 7;
    std::array<Event, kEvents> events;
    u32 next = kNone;
    u32 used = 0;
  };
  struct Day {
    u32 first = kNone, last = kNone;  // blocks
  };
  struct LateEvent {
    Event event;
    u64 order;  // of those added, for equal ones
  };

  u64 day_of(Time at) const { return static_cast<u64>(at.ps()) >> day_bits_; }
  void add_to_day(u64 day, const Event& event);
  void add_today(const Event& event);
  void add_late(const Event& event);
  bool begin_next_day();
  u64 next_busy_day() const;
  void open(u64 day);
  void sort_today();
  void bring_near();
  u32 new_block();
  static bool later(const LateEvent& a, const LateEvent& b);

  u32 day_bits_;
  u64 now_ = 0;               // the running day
  u64 size_ = 0;              // of events in days to come, late ones included
  std::vector<Event> today_;  // sorted
  std::size_t next_ = 0;      // in it
  std::vector<Day> days_;
  std::array<u64, kDays / 64> busy_{};  // a bit for each day that has events
  std::vector<Block> blocks_;
  u32 free_ = kNone;
  std::vector<LateEvent> late_;  // a heap
  u64 late_added_ = 0;
};

}  // namespace verbena::fabric
