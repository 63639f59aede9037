// CompletionQueue: a bounded FIFO of CQEs that many QPs may share. IBTA Vol 1, 10.2.6 (CQ), 11.4.2
// (poll, request notification), 11.6.3.2 (CQ error).
// Invariants: once overrun, nothing is added any more, and what is there can still be taken. A
// notification is due at most once per request: for a CQE added after it; a moderated one when
// enough of them have come, or long enough after the first. IBTA promises none for CQEs that were
// there before, but cards, which are told at the request how far the consumer is, notify of those
// too, and programs that poll a few per notification rely on it. Here it is due if the consumer
// leaves them there: programs that take all are not woken for nothing.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "base/status.h"
#include "device/objects/cq_moderation.h"
#include "device/objects/event_queue.h"
#include "device/objects/notify_on.h"
#include "transport/cqe.h"

namespace verbena {

enum class CQPush : u8 {
  kAdded,
  kNotificationDue,    // added, and it is what the consumer waits for
  kNotificationLater,  // added, and the first of those that a moderated notification stands for
  kOverrun,            // no room: the CQ has just failed
  kDropped,            // had failed earlier
};

class CompletionQueue {
 public:
  CompletionQueue(u32 slot, u32 capacity, void* user_pointer,
                  OnOverrun on_overrun = OnOverrun::kFail);
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  u32 table_slot() const { return slot_; }
  u32 capacity() const { return capacity_; }
  u32 size() const { return static_cast<u32>(tail_ - head_); }
  bool overrun() const { return overrun_; }
  // As if one CQE too many had come. False: it is overrun already.
  bool force_overrun() { return !std::exchange(overrun_, true); }

  // Where to make the next CQE, in place, before push().
  [[nodiscard]] CQE& next() { return takes_more() ? at(tail_) : refused_; }
  [[nodiscard]] CQPush push();  // at its completed_at, which never goes back
  [[nodiscard]] CQPush push(const CQE& cqe) {
    next() = cqe;
    return push();
  }
  // Oldest first; how many were taken.
  u32 poll(std::span<CQE> out);
  // IBTA 11.4.2.2. kAnyCompletion outranks kSolicitedOnly until the notification is due. Whether it
  // has found fitting CQEs.
  bool request_notification(NotifyOn on, Time now);
  void moderate(const CQModeration& moderation) { moderation_ = moderation; }
  // When a moderated notification is due at last, after kNotificationLater; Time::never(): it was
  // taken.
  [[nodiscard]] Time notification_deadline() const;
  // Whether fitting CQEs that the request has found are still there, and since when.
  [[nodiscard]] bool has_leftovers() const { return armed_ != Armed::kNot && leftovers_ != 0; }
  [[nodiscard]] Time requested_at() const { return requested_at_; }
  void take_late_notification() { armed_ = Armed::kNot; }
  // kInvalidArgument: holds more than that already.
  [[nodiscard]] Status resize(u32 capacity);
  // Removes the CQEs of a QP that is destroyed or reset; the order of the others stays. Returns how
  // many of the removed are of receives.
  u32 remove(QPN qpn);
  // Whether a CQE may be overwritten before it is polled. Its entries then are free at once.
  [[nodiscard]] bool overwrites() const { return on_overrun_ == OnOverrun::kOverwriteOldest; }

  void* const user;
  u32 users = 0;  // work queues that complete here
  EventSource events{.cq = this};
  ListLink<CompletionQueue> request_link;       // NotificationQueue: requested, and not due yet
  ListLink<CompletionQueue> notification_link;  // NotificationQueue: due
  ListLink<CompletionQueue> moderation_link;    // NotificationQueue: due later
  ListLink<CompletionQueue> leftover_link;      // NotificationQueue: due unless they are taken
  ListLink<CompletionQueue> overrun_link;       // in the engine runner's list of failed CQs

 private:
  enum class Armed : u8 { kNot, kSolicited, kAny };
  union Slot {  // left uninitialized: an untouched page of a large CQ costs nothing
    CQE cqe;
    Slot() {}
  };
  static std::unique_ptr<Slot[]> allocate(u32 capacity);
  CQE& at(u64 index) { return slots_[index & mask_].cqe; }
  bool takes_more() const {
    return !overrun_ && (size() < capacity_ || on_overrun_ != OnOverrun::kFail);
  }
  [[nodiscard]] bool fits(const CQE& cqe) const;
  CQPush notify(const CQE& cqe);
  [[nodiscard]] u32 find_leftovers();

  u32 slot_;
  u32 capacity_;
  u64 mask_;
  u64 head_ = 0, tail_ = 0;
  const OnOverrun on_overrun_;
  Armed armed_ = Armed::kNot;
  u32 leftovers_ = 0;  // so many of the oldest: up to the last that fits
  Time requested_at_;
  CQModeration moderation_;
  u32 moderated_ = 0;     // fitting CQEs since the request
  Time first_moderated_;  // when the first of them came
  bool overrun_ = false;
  CQE refused_;  // of no interest
  std::unique_ptr<Slot[]> slots_;
};

}  // namespace verbena
