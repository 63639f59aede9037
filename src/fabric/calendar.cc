#include "fabric/calendar.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace verbena::fabric {

Calendar::Calendar(Duration window) : length_(static_cast<u64>(window.ps())), lists_(kWindows) {
  CHECK(window.ps() > 0);
}

void Calendar::add(u64 window, const Event& event) {
  if (window < now_ + kWindows) return add_near(window, event);
  late_.push_back({event, late_added_++});
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
u64 Calendar::next() const {
  if (size_ == 0) return late_.empty() ? kNever : window_of(late_.front().event.at);
  const u32 from = static_cast<u32>(now_ % kWindows);
  u32 word = from / 64;
  u64 bits = busy_[word] & (~u64{0} << (from % 64));
  while (bits == 0) {
    word = (word + 1) % static_cast<u32>(busy_.size());
    bits = busy_[word];
  }
  const u32 index = word * 64 + static_cast<u32>(std::countr_zero(bits));
  return now_ + (index + kWindows - from) % kWindows;
}

// Before any of the same window can be added after them.
void Calendar::bring_near() {
  while (!late_.empty() && window_of(late_.front().event.at) < now_ + kWindows) {
    std::ranges::pop_heap(late_, later);
    add_near(window_of(late_.back().event.at), late_.back().event);
    late_.pop_back();
  }
}

void Calendar::take(u64 window, std::vector<Event>& out) {
  CHECK(window >= now_);
  now_ = window;
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
