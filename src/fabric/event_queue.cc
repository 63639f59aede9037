#include "fabric/event_queue.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace verbena::fabric {
namespace {

constexpr std::size_t kFew = 32;  // sorted by insertion

bool before(const Event& a, const Event& b) { return a.at < b.at; }

void insertion_sort(std::vector<Event>& events) {
  for (std::size_t i = 1; i < events.size(); ++i) {
    const Event event = events[i];
    std::size_t to = i;
    for (; to > 0 && event.at < events[to - 1].at; --to) events[to] = events[to - 1];
    events[to] = event;
  }
}

}  // namespace

EventQueue::EventQueue(Duration day)
    : day_bits_(static_cast<u32>(std::bit_width(static_cast<u64>(day.ps()) - 1))), days_(kDays) {
  CHECK(day.ps() > 0);
}

void EventQueue::add(const Event& event) {
  const u64 day = day_of(event.at);
  if (day <= now_) return add_today(event);
  ++size_;
  if (day - now_ < kDays) return add_to_day(day, event);
  add_late(event);
}

// Behind its equals, and never before what has been taken.
void EventQueue::add_today(const Event& event) {
  const auto from = today_.begin() + static_cast<std::ptrdiff_t>(next_);
  today_.insert(std::upper_bound(from, today_.end(), event, before), event);
}

u32 EventQueue::new_block() {
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

void EventQueue::add_to_day(u64 day, const Event& event) {
  const u32 index = static_cast<u32>(day % kDays);
  Day& to = days_[index];
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
}

bool EventQueue::later(const LateEvent& a, const LateEvent& b) {
  return a.event.at != b.event.at ? a.event.at > b.event.at : a.order > b.order;
}

void EventQueue::add_late(const Event& event) {
  late_.push_back({event, late_added_++});
  std::ranges::push_heap(late_, later);
}

// Late events that the calendar shows by now, before any of the same time can be added after them.
void EventQueue::bring_near() {
  while (!late_.empty() && day_of(late_.front().event.at) - now_ < kDays) {
    std::ranges::pop_heap(late_, later);
    add_to_day(day_of(late_.back().event.at), late_.back().event);
    late_.pop_back();
  }
}

// Precondition: some day of the calendar is busy.
u64 EventQueue::next_busy_day() const {
  const u32 from = static_cast<u32>((now_ + 1) % kDays);
  u32 word = from / 64;
  u64 bits = busy_[word] & (~u64{0} << (from % 64));
  while (bits == 0) {
    word = (word + 1) % static_cast<u32>(busy_.size());
    bits = busy_[word];
  }
  const u32 index = word * 64 + static_cast<u32>(std::countr_zero(bits));
  return now_ + 1 + (index + kDays - from) % kDays;
}

bool EventQueue::begin_next_day() {
  if (size_ == 0) return false;
  if (size_ == late_.size()) {  // the calendar is empty
    now_ = day_of(late_.front().event.at) - 1;
    bring_near();
  }
  open(next_busy_day());
  return true;
}

void EventQueue::open(u64 day) {
  now_ = day;
  const u32 index = static_cast<u32>(day % kDays);
  today_.clear();
  next_ = 0;
  u32 at = days_[index].first;
  while (at != kNone) {
    Block& block = blocks_[at];
    today_.insert(today_.end(), block.events.begin(), block.events.begin() + block.used);
    const u32 next = block.next;
    block.next = free_;
    free_ = at;
    at = next;
  }
  days_[index] = {};
  busy_[index / 64] &= ~(u64{1} << (index % 64));
  size_ -= today_.size();
  sort_today();
  bring_near();
}

void EventQueue::sort_today() {
  if (today_.size() <= kFew)
    insertion_sort(today_);
  else
    std::ranges::stable_sort(today_, before);
}

}  // namespace verbena::fabric
