// EventQueue: the events of one part of a network. Time goes in windows (windows.h): what one node
// does within a window reaches no other in it, and each node's events of the window are simulated
// by themselves, one node after another, while what they need is in the cache.
#pragma once

#include <span>
#include <vector>

#include "fabric/agenda.h"
#include "fabric/calendar.h"
#include "fabric/windows.h"

namespace verbena::fabric {

class EventQueue {
 public:
  // `node_of_place`: of each port. It outlives the queue.
  EventQueue(const Windows& windows, std::span<const u32> node_of_place);
  // Uses one agenda for all nodes from now on: their events may then meet within a window.
  // Precondition: the queue is empty.
  void keep_together();

  // Adds an event of the node being simulated, at or after the event taken last; or an event
  // between windows.
  void add(const Event& event) {
    if (!running_) return calendar_.add(window_of(event.at, event.place()), event);
    const Duration since = event.at - start_;
    if (since.ps() < length_) return agenda_.add(event);
    calendar_.add(windows_.window_after(window_, since, Windows::Side::kOwn), event);
  }
  // Adds an event of a node that is linked to the one being simulated, or an event between windows.
  void add_at_neighbour(const Event& event) {
    if (node_of_place_.empty()) return add(event);
    calendar_.add(window_at_neighbour(event), event);
  }
  [[nodiscard]] u64 window_at_neighbour(const Event& event) const {
    if (!running_) return window_of(event.at, event.place());
    return windows_.window_after(window_, event.at - start_, Windows::Side::kOther);
  }
  // Adds an event of any node other than the one being simulated.
  void add_elsewhere(const Event& event) {
    if (node_of_place_.empty()) return add(event);
    calendar_.add(window_of(event.at, event.place()), event);
  }

  static constexpr u64 kNever = Calendar::kNever;
  // Returns the first window, from `from` on, that has events.
  [[nodiscard]] u64 next_window(u64 from) const { return calendar_.next(from); }
  [[nodiscard]] u64 window_of(Time at, u32 place) const {
    return windows_.window_of(at, windows_.side_of(place));
  }
  [[nodiscard]] Time start_of(u64 window) const { return windows_.start_of(window); }
  [[nodiscard]] Time end_of(u64 window) const { return start_of(window) + ps(length_); }

  // To take the events of a window, which is not before the one before the last: call open(), then
  // next_node() until it returns false, and for each node take() until it returns false. Events
  // that are left then, after `end`, stay for the next time.
  void open(u64 window);
  [[nodiscard]] bool next_node();
  // node() returns the node being simulated; kTogether stands for all of them.
  static constexpr u32 kTogether = ~u32{0};
  [[nodiscard]] u32 node() const {
    return node_of_place_.empty() ? kTogether : groups_[next_group_ - 1].node;
  }
  [[nodiscard]] bool take(Time end, Event& out) { return agenda_.take(end, out); }
  [[nodiscard]] const Event* ahead(u32 n) const { return agenda_.ahead(n); }
  // Returns the events of the n-th node after this one, in no order; empty if there is none.
  [[nodiscard]] std::span<const Event> of_node_ahead(u32 n) const {
    const std::size_t index = next_group_ + n - 1;
    if (index >= groups_.size() || node_of_place_.empty()) return {};
    return std::span(grouped_).subspan(groups_[index].begin,
                                       groups_[index].end - groups_[index].begin);
  }
  [[nodiscard]] bool empty() const { return calendar_.size() == 0; }

 private:
  struct Group {  // of events of one node
    u32 node = 0;
    u32 begin = 0, end = 0;
  };

  void take_all(u64 window);
  void group_by_node(u64 window);
  void end_node();

  std::span<const u32> node_of_place_;  // empty: they are kept together
  Windows windows_;
  i64 length_;  // of a window, in picoseconds
  Calendar calendar_;
  Agenda agenda_;
  bool running_ = false;
  u64 window_ = 0;              // that is open
  Time start_;                  // of it
  std::vector<Event> grouped_;  // its events, by node
  std::vector<Group> groups_;
  std::size_t next_group_ = 0;
  std::vector<u32> group_of_;        // of each node, while they are made
  std::vector<u32> group_of_event_;  // likewise, as they were added
};

}  // namespace verbena::fabric
