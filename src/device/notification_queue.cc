#include "device/notification_queue.h"

#include <algorithm>

namespace verbena {

void NotificationQueue::on_timer(Time now) {
  for (CompletionQueue *cq = later_.front(), *next = nullptr; cq != nullptr; cq = next) {
    next = cq->moderation_link.next;
    if (cq->notification_deadline() > now) continue;
    cq->take_late_notification();
    on_due(*cq);
  }
}

Time NotificationQueue::next_timer() const {
  Time earliest = Time::never();
  for (const CompletionQueue* cq = later_.front(); cq != nullptr; cq = cq->moderation_link.next)
    earliest = std::min(earliest, cq->notification_deadline());
  return earliest;
}

}  // namespace verbena
