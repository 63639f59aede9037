#include "fabric/event_queue.h"

#include <algorithm>

#include "base/check.h"

namespace verbena::fabric {
namespace {

constexpr u32 kNoGroup = ~u32{0};
constexpr Duration kTogether = ns(32);  // a window of all nodes, which is to be sorted

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
  windows_ = Windows(kTogether);
  length_ = kTogether.ps();
}

void EventQueue::open(u64 window) {
  start_ = windows_.start_of(window);
  events_.clear();
  calendar_.take(window, events_);
  groups_.clear();
  next_group_ = 0;
  if (node_of_place_.empty())
    groups_.push_back({.end = static_cast<u32>(events_.size())});
  else
    group_by_node();
}

// In the order in which the nodes' first events were added, as the last windows had it.
void EventQueue::group_by_node() {
  for (const Event& event : events_) {
    const u32 node = node_of_place_[event.place()];
    if (group_of_[node] == kNoGroup) {
      group_of_[node] = static_cast<u32>(groups_.size());
      groups_.push_back({.node = node});
    }
    ++groups_[group_of_[node]].end;
  }
  u32 sum = 0;
  for (Group& group : groups_) {
    group.begin = sum;
    sum += group.end;
    group.end = group.begin;
  }
  grouped_.resize(events_.size());
  for (const Event& event : events_)
    grouped_[groups_[group_of_[node_of_place_[event.place()]]].end++] = event;
  for (const Group& group : groups_) group_of_[group.node] = kNoGroup;
}

bool EventQueue::next_node() {
  end_node();
  if (next_group_ == groups_.size()) return false;
  const Group& group = groups_[next_group_++];
  const std::vector<Event>& events = node_of_place_.empty() ? events_ : grouped_;
  agenda_.begin(start_, std::span(events).subspan(group.begin, group.end - group.begin));
  running_ = true;
  return true;
}

void EventQueue::end_node() {
  running_ = false;
  agenda_.end([this](const Event& event) { add(event); });
}

}  // namespace verbena::fabric
