#include "fabric/calendar.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace verbena::fabric {

void Calendar::add(u64 window, const Event& event) {
  if (window < first_ + kWindows) return add_near(window, event);
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

void Calendar::add_near(u64 window, const Event& event) {
  const u32 index = static_cast<u32>(window % kWindows);
  List& to = lists_[index];
  if (to.last == kNone) {
    to.first = to.last = new_block();
    busy_[index / 64] |= u64{1} << (index % 64);
  } else if (blocks_[to.last].used == Block::kEvents) {
    const u32 block = new_block();
    blocks_[to.last].next = block;
    to.last = block;
  }
  Block& block = blocks_[to.last];
  block.events[block.used++] = event;
  ++size_;
}

// What is late is at least kWindows away, and so behind all lists.
u64 Calendar::next(u64 from) const {
  const u64 next_late = late_.empty() ? kNever : late_.front().window;
  if (size_ == 0 || from >= first_ + kWindows) return next_late;
  for (u64 window = std::max(from, first_); window < first_ + kWindows;) {
    const u32 index = static_cast<u32>(window % kWindows);
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
    add_near(late_.back().window, late_.back().event);
    late_.pop_back();
  }
}

void Calendar::take(u64 window, std::vector<Event>& out) {
  CHECK(window >= first_);
  if (window > first_) first_ = window - 1;
  bring_near();
  const u32 index = static_cast<u32>(window % kWindows);
  for (u32 at = lists_[index].first; at != kNone;) {
    Block& block = blocks_[at];
    out.insert(out.end(), block.events.begin(), block.events.begin() + block.used);
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
