#include "fabric/event_queue.h"

#include <algorithm>

#include "base/check.h"

namespace verbena::fabric {
namespace {

constexpr u32 kNoGroup = ~u32{0};
constexpr Duration kWindowOfAll = ns(32);  // which is to be sorted

}  // namespace

EventQueue::EventQueue(const Windows& windows, std::span<const u32> node_of_place)
    : node_of_place_(node_of_place), windows_(windows), length_(windows.length().ps()) {
  CHECK(length_ > 0 && length_ <= i64{1} << Agenda::kMaxWindowBits);
  if (!node_of_place.empty()) group_of_.assign(std::ranges::max(node_of_place) + 1, kNoGroup);
}

void EventQueue::keep_together() {
  if (node_of_place_.empty()) return;
  CHECK(empty() && !running_);
  node_of_place_ = {};
  windows_ = Windows(kWindowOfAll);
  length_ = kWindowOfAll.ps();
}

void EventQueue::open(u64 window) {
  window_ = window;
  start_ = windows_.start_of(window);
  calendar_.reach(window);
  grouped_.resize(calendar_.count(window));
  groups_.clear();
  next_group_ = 0;
  if (node_of_place_.empty())
    take_all(window);
  else
    group_by_node(window);
  calendar_.clear(window);
}

void EventQueue::take_all(u64 window) {
  groups_.push_back({.end = static_cast<u32>(grouped_.size())});
  u32 next = 0;
  calendar_.visit(window, [&](const Event& event) { grouped_[next++] = event; });
}

// In the order in which the nodes' first events were added, as the last windows had it.
void EventQueue::group_by_node(u64 window) {
  group_of_event_.resize(grouped_.size());
  u32 next = 0;
  calendar_.visit(window, [&](const Event& event) {
    u32& group = group_of_[node_of_place_[event.place()]];
    if (group == kNoGroup) {
      group = static_cast<u32>(groups_.size());
      groups_.push_back({.node = node_of_place_[event.place()]});
    }
    ++groups_[group].end;
    group_of_event_[next++] = group;
  });
  u32 sum = 0;
  for (Group& group : groups_) {
    group.begin = sum;
    sum += group.end;
    group.end = group.begin;
    group_of_[group.node] = kNoGroup;
  }
  next = 0;
  calendar_.visit(window, [&](const Event& event) {
    grouped_[groups_[group_of_event_[next++]].end++] = event;
  });
}

bool EventQueue::next_node() {
  end_node();
  if (next_group_ == groups_.size()) return false;
  const Group& group = groups_[next_group_++];
  agenda_.begin(start_, ps(length_),
                std::span(grouped_).subspan(group.begin, group.end - group.begin));
  running_ = true;
  return true;
}

void EventQueue::end_node() {
  running_ = false;
  agenda_.end([this](const Event& event) { add(event); });
}

}  // namespace verbena::fabric
