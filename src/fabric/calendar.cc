#include "fabric/calendar.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace verbena::fabric {

void Calendar::add_late(u64 window, Event event) {
  late_.push_back({event, window, late_added_++});
  std::ranges::push_heap(late_, later);
}

u32 Calendar::new_block() {
  if (free_ == kNone) {
    blocks_.emplace_back();
    return static_cast<u32>(blocks_.size() - 1);
  }
  const u32 block = free_;
  free_ = blocks_[block].next;
  blocks_[block].next = kNone;
  blocks_[block].used = 0;
  return block;
}

Calendar::Block& Calendar::append_block(u32 list) {
  const u32 block = new_block();
  List& to = lists_[list];
  if (to.last == kNone) {
    to.first = block;
    busy_[list / 64] |= u64{1} << (list % 64);
  } else {
    blocks_[to.last].next = block;
  }
  to.last = block;
  return blocks_[block];
}

// What is late is at least kWindows away, and so behind all lists.
u64 Calendar::next(u64 from) const {
  const u64 next_late = late_.empty() ? kNever : late_.front().window;
  if (size_ == 0 || from >= first_ + kWindows) return next_late;
  for (u64 window = std::max(from, first_); window < first_ + kWindows;) {
    const u32 index = index_of(window);
    const u64 bits = busy_[index / 64] >> (index % 64);
    if (bits != 0) {
      window += static_cast<u32>(std::countr_zero(bits));
      return window < first_ + kWindows ? window : next_late;
    }
    window += 64 - index % 64;
  }
  return next_late;
}

// Before any of the same window can be added after them.
void Calendar::bring_near() {
  while (!late_.empty() && late_.front().window < first_ + kWindows) {
    std::ranges::pop_heap(late_, later);
    add(late_.back().window, late_.back().event);
    late_.pop_back();
  }
}

void Calendar::reach(u64 window) {
  CHECK(window >= first_);
  if (window > first_) first_ = window - 1;
  bring_near();
}

u32 Calendar::count(u64 window) const {
  u32 sum = 0;
  for (u32 at = lists_[index_of(window)].first; at != kNone; at = blocks_[at].next)
    sum += blocks_[at].used;
  return sum;
}

void Calendar::clear(u64 window) {
  const u32 index = index_of(window);
  for (u32 at = lists_[index].first; at != kNone;) {
    Block& block = blocks_[at];
    size_ -= block.used;
    const u32 next = block.next;
    block.next = free_;
    free_ = at;
    at = next;
  }
  lists_[index] = {};
  busy_[index / 64] &= ~(u64{1} << (index % 64));
}

}  // namespace verbena::fabric
