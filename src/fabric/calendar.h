// Calendar: the events to come, by the window of time that they lie in, and in no order within it:
// lists of the near future's windows, where nearly all events are (a frame arrives after one link
// delay), and a heap for what is later. R. Brown, "Calendar Queues", CACM 31(10), 1988.
//
// The lists are made of small blocks that go from window to window, so that the memory in use is
// that of the events in flight. No allocation while their number does not exceed what it was.
// Blocks lie one after another, so that a list need only know its next place: that of a new block
// is the first of one.
#pragma once

#include <array>
#include <vector>

#include "fabric/event.h"

namespace verbena::fabric {

class Calendar {
 public:
  static constexpr u64 kNever = ~u64{0};

  Calendar() : lists_(kWindows) {}

  // Not before the one before the window reached last.
  void add(u64 window, const Event& event) {
    if (window >= first_ + kWindows) [[unlikely]]
      return add_late(window, event);
    List& list = lists_[index_of(window)];
    if (list.next % kBlock == 0) [[unlikely]]
      append_block(list, window);
    Event& place = events_[list.next++];  // written in parts, as `event` just was
    place.at = event.at;
    place.what = event.what;
    place.subject = event.subject;
    place.rank = event.rank;
    ++size_;
  }
  // Returns the first window, from this one on, that has events; kNever if there is none.
  [[nodiscard]] u64 next(u64 from) const;
  // Goes on to that window, which is not before the one before that reached last.
  void reach(u64 window);
  // These work on the window reached last: count() returns the number of its events, visit() calls
  // visit(event) in the order of adding, clear() removes the events.
  [[nodiscard]] u32 count(u64 window) const;
  template <typename Visit>
  void visit(u64 window, const Visit& visit) const {
    const List& list = lists_[index_of(window)];
    for (u32 block = list.first; block != kNone; block = next_[block])
      for (u32 i = block * kBlock, end = end_of(list, block); i != end; ++i) visit(events_[i]);
  }
  void clear(u64 window);
  [[nodiscard]] u64 size() const { return size_ + late_.size(); }

 private:
  static constexpr u32 kWindows = 8192;  // that have a list
  static constexpr u32 kNone = ~u32{0};
  static constexpr u32 kBlock = 32;  // events
  struct List {
    u32 first = kNone;  // block
    u32 next = 0;       // place, in events_; the first of a block: the last block is full
  };

  static u32 index_of(u64 window) { return static_cast<u32>(window % kWindows); }
  static u32 last_block_of(const List& list) { return (list.next - 1) / kBlock; }
  u32 end_of(const List& list, u32 block) const {  // of what the block holds
    return block == last_block_of(list) ? list.next : (block + 1) * kBlock;
  }
  void append_block(List& list, u64 window);
  void add_late(u64 window, const Event& event);
  void bring_near();
  u32 new_block();
  struct LateEvent {
    Event event;
    u64 window;
    u64 order;  // of those added, for equal ones
  };
  static bool later(const LateEvent& a, const LateEvent& b) {
    return a.window != b.window ? a.window > b.window : a.order > b.order;
  }

  u64 first_ = 0;  // that has a list: the one before the window reached last
  u64 size_ = 0;
  std::vector<List> lists_;
  std::array<u64, kWindows / 64> busy_{};  // a bit for each list that has events
  std::vector<Event> events_;              // of all blocks
  std::vector<u32> next_;                  // of each block, in its list
  u32 free_ = kNone;
  std::vector<LateEvent> late_;  // a heap
  u64 late_added_ = 0;
};

}  // namespace verbena::fabric
