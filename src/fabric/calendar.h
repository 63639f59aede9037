// Calendar: the events to come, by the window of time that they lie in, and in no order within it:
// lists of the near future's windows, where nearly all events are (a frame arrives after one link
// delay), and a heap for what is later. R. Brown, "Calendar Queues", CACM 31(10), 1988.
//
// The lists are made of small blocks that go from window to window, so that the memory in use is
// that of the events in flight. No allocation while their number does not exceed what it was.
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
    Block& block = block_with_room(index_of(window));
    Event& place = block.events[block.used++];  // written in parts, as `event` just was
    place.at = event.at;
    place.what = event.what;
    place.subject = event.subject;
    place.rank = event.rank;
    ++size_;
  }
  // The first window, from this one on, that has events; kNever: there is none.
  [[nodiscard]] u64 next(u64 from) const;
  // Goes on to that window, which is not before the one before that reached last.
  void reach(u64 window);
  // What the window reached last has: how many; visit(event) in the order of adding; and nothing
  // any more.
  [[nodiscard]] u32 count(u64 window) const;
  template <typename Visit>
  void visit(u64 window, const Visit& visit) const {
    for (u32 at = lists_[index_of(window)].first; at != kNone; at = blocks_[at].next)
      for (u32 i = 0; i < blocks_[at].used; ++i) visit(blocks_[at].events[i]);
  }
  void clear(u64 window);
  [[nodiscard]] u64 size() const { return size_ + late_.size(); }

 private:
  static constexpr u32 kWindows = 8192;  // that have a list
  static constexpr u32 kNone = ~u32{0};
  struct Block {
    static constexpr u32 kEvents = 31;
    std::array<Event, kEvents> events;
    u32 next = kNone;
    u32 used = 0;
  };
  struct List {
    u32 first = kNone, last = kNone;  // blocks
  };

  static u32 index_of(u64 window) { return static_cast<u32>(window % kWindows); }
  Block& block_with_room(u32 list) {
    const u32 last = lists_[list].last;
    if (last == kNone || blocks_[last].used == Block::kEvents) [[unlikely]]
      return append_block(list);
    return blocks_[last];
  }
  Block& append_block(u32 list);
  void add_late(u64 window, Event event);
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
  std::vector<Block> blocks_;
  u32 free_ = kNone;
  std::vector<LateEvent> late_;  // a heap
  u64 late_added_ = 0;
};

}  // namespace verbena::fabric
