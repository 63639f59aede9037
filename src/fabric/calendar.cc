#include "fabric/calendar.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace verbena::fabric {

void Calendar::add_late(u64 window, const Event& event) {
  late_.push_back({event, window, late_added_++});
  std::ranges::push_heap(late_, later);
}

u32 Calendar::new_block() {
  if (free_ == kNone) {
    events_.resize(events_.size() + kBlock);
    next_.push_back(kNone);
    return static_cast<u32>(next_.size() - 1);
  }
  const u32 block = free_;
  free_ = next_[block];
  next_[block] = kNone;
  return block;
}

void Calendar::append_block(List& list, u64 window) {
  const u32 block = new_block(), index = index_of(window);
  if (list.first == kNone) {
    list.first = block;
    busy_[index / 64] |= u64{1} << (index % 64);
  } else {
    next_[last_block_of(list)] = block;
  }
  list.next = block * kBlock;
}

// Late events are at least kWindows away, and so after all lists.
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

// Runs before any event of the same window can be added after them.
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
  const List& list = lists_[index_of(window)];
  u32 sum = 0;
  for (u32 block = list.first; block != kNone; block = next_[block])
    sum += end_of(list, block) - block * kBlock;
  return sum;
}

void Calendar::clear(u64 window) {
  const u32 index = index_of(window);
  List& list = lists_[index];
  for (u32 block = list.first; block != kNone;) {
    size_ -= end_of(list, block) - block * kBlock;
    const u32 next = next_[block];
    next_[block] = free_;
    free_ = block;
    block = next;
  }
  list = {};
  busy_[index / 64] &= ~(u64{1} << (index % 64));
}

}  // namespace verbena::fabric
