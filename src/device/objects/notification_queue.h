// NotificationQueue: the CQs whose completion event is due, or will be when their moderation says
// so. IBTA Vol 1, 11.4.2.2; ibv_modify_cq(3).
// No allocation. What is due later is searched for the earliest: moderated CQs that have something
// to tell are few. CQs with leftovers lie in the order of their requests.
#pragma once

#include "device/intrusive_list.h"
#include "device/objects/completion_queue.h"

namespace verbena {

class NotificationQueue {
 public:
  // A notification is requested of it.
  void on_request(CompletionQueue& cq) { requested_.push_back(cq); }
  // Whether a notification is requested of any CQ and is not due yet: a program may sleep until
  // then.
  [[nodiscard]] bool has_requests() const { return !requested_.empty(); }
  void on_due(CompletionQueue& cq) {
    requested_.remove(cq);
    later_.remove(cq);
    leftovers_.remove(cq);
    due_.push_back(cq);
  }
  void on_later(CompletionQueue& cq) { later_.push_back(cq); }
  // A request has found CQEs. A consumer that polls after it takes them soon.
  void on_leftovers(CompletionQueue& cq);
  static constexpr Duration kTakenSoon = ms(1);
  void hurry_leftovers();  // no consumer takes them now
  void on_timer(Time now);
  [[nodiscard]] Time next_timer() const;  // Time::never(): none will be due by itself
  [[nodiscard]] CompletionQueue* poll() { return due_.pop_front(); }  // nullptr if none is due
  [[nodiscard]] bool has_due() const { return !due_.empty(); }
  void forget(CompletionQueue& cq) {
    requested_.remove(cq);
    due_.remove(cq);
    later_.remove(cq);
    leftovers_.remove(cq);
  }

 private:
  void settle(CompletionQueue& cq);  // with leftovers, perhaps

  IntrusiveList<CompletionQueue, &CompletionQueue::request_link> requested_;
  IntrusiveList<CompletionQueue, &CompletionQueue::notification_link> due_;
  IntrusiveList<CompletionQueue, &CompletionQueue::moderation_link> later_;
  IntrusiveList<CompletionQueue, &CompletionQueue::leftover_link> leftovers_;  // perhaps none now
};

}  // namespace verbena
