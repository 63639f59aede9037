#include "device/objects/notification_queue.h"

#include <algorithm>

namespace verbena {

void NotificationQueue::on_timer(Time now) {
  for (CompletionQueue *cq = later_.front(), *next = nullptr; cq != nullptr; cq = next) {
    next = cq->moderation_link.next;
    if (cq->notification_deadline() > now) continue;
    cq->take_late_notification();
    on_due(*cq);
  }
  while (!leftovers_.empty() && leftovers_.front()->requested_at() + kTakenSoon <= now)
    settle(*leftovers_.front());
}

void NotificationQueue::on_leftovers(CompletionQueue& cq) {
  leftovers_.remove(cq);
  while (!leftovers_.empty() && !leftovers_.front()->has_leftovers()) leftovers_.pop_front();
  leftovers_.push_back(cq);
}

void NotificationQueue::hurry_leftovers() {
  while (CompletionQueue* const cq = leftovers_.front()) settle(*cq);
}

void NotificationQueue::settle(CompletionQueue& cq) {
  leftovers_.remove(cq);
  if (!cq.has_leftovers()) return;
  cq.take_late_notification();
  on_due(cq);
}

Time NotificationQueue::next_timer() const {
  Time earliest =
      leftovers_.empty() ? Time::never() : leftovers_.front()->requested_at() + kTakenSoon;
  for (const CompletionQueue* cq = later_.front(); cq != nullptr; cq = cq->moderation_link.next)
    earliest = std::min(earliest, cq->notification_deadline());
  return earliest;
}

}  // namespace verbena
