// TimerQueue: which QP is due next, of those that wait for a time: its timer's, or to send again. A
// binary heap with one entry per QP at most.
// Lazy: an entry may be earlier than its QP's deadline, never later. A deadline that moves to later
// (every ACK moves one) costs nothing; its entry is looked at again when it comes to the top.
#pragma once

#include <vector>

#include "device/qp/queue_pair.h"

namespace verbena {

class TimerQueue {
 public:
  // `position`: the QP's place in this queue.
  explicit TimerQueue(u32 QueuePair::*position) : position_(position) {}

  // Room for so many QPs, so that update() never allocates.
  void reserve(u32 qp_count);
  [[nodiscard]] u32 size() const { return static_cast<u32>(heap_.size()); }
  [[nodiscard]] bool contains(const QueuePair& qp) const {
    return qp.*position_ != QueuePair::kNoTimer;
  }

  void update(QueuePair& qp, Time deadline) {  // Time::never(): nothing armed
    if (deadline != Time::never() && !has_entry_before(qp, deadline)) move(qp, deadline);
  }
  void remove(QueuePair& qp);
  [[nodiscard]] Time next() const { return heap_.empty() ? Time::never() : heap_[0].at; }
  // Takes out a QP whose entry is due: its engine knows whether its deadline is. nullptr: none.
  [[nodiscard]] QueuePair* pop_due(Time now);

 private:
  struct Entry {
    Time at;
    QueuePair* qp;
  };
  [[nodiscard]] bool has_entry_before(const QueuePair& qp, Time deadline) const {
    return contains(qp) && heap_[qp.*position_].at <= deadline;
  }
  void move(QueuePair& qp, Time to);  // to an earlier place, or in
  void place(u32 position, Entry entry);
  void sift_up(u32 position, Entry entry);
  void sift_down(u32 position, Entry entry);

  u32 QueuePair::*position_;
  std::vector<Entry> heap_;
};

}  // namespace verbena
