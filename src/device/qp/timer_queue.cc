#include "device/qp/timer_queue.h"

namespace verbena {

void TimerQueue::reserve(u32 qp_count) {
  if (qp_count > heap_.capacity()) heap_.reserve(std::size_t{2} * qp_count);
}

void TimerQueue::place(u32 position, Entry entry) {
  heap_[position] = entry;
  entry.qp->*position_ = position;
}

void TimerQueue::sift_up(u32 position, Entry entry) {
  while (position > 0) {
    const u32 parent = (position - 1) / 2;
    if (heap_[parent].at <= entry.at) break;
    place(position, heap_[parent]);
    position = parent;
  }
  place(position, entry);
}

void TimerQueue::sift_down(u32 position, Entry entry) {
  for (;;) {
    u32 child = 2 * position + 1;
    if (child >= size()) break;
    if (child + 1 < size() && heap_[child + 1].at < heap_[child].at) ++child;
    if (entry.at <= heap_[child].at) break;
    place(position, heap_[child]);
    position = child;
  }
  place(position, entry);
}

void TimerQueue::move(QueuePair& qp, Time to) {
  if (contains(qp)) return sift_up(qp.*position_, {to, &qp});
  heap_.push_back({to, &qp});
  sift_up(size() - 1, {to, &qp});
}

void TimerQueue::remove(QueuePair& qp) {
  const u32 position = qp.*position_;
  if (position == QueuePair::kNoTimer) return;
  qp.*position_ = QueuePair::kNoTimer;
  const Entry last = heap_.back();
  heap_.pop_back();
  if (last.qp == &qp) return;
  if (position > 0 && last.at < heap_[(position - 1) / 2].at) {
    sift_up(position, last);
  } else {
    sift_down(position, last);
  }
}

QueuePair* TimerQueue::pop_due(Time now) {
  if (heap_.empty() || heap_[0].at > now) return nullptr;
  QueuePair* const qp = heap_[0].qp;
  remove(*qp);
  return qp;
}

}  // namespace verbena
