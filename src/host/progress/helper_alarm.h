// HelperAlarm: the last orders to the helper thread: whether it listens, and when it wakes. Tells
// it again only if that changes its behaviour, because a system call costs as much as ten calls of
// a program. Not thread-safe: the adapter's lock guards it.
#pragma once

#include <memory>

#include "host/links/link.h"
#include "host/progress/helper_thread.h"
#include "host/progress/holding_policy.h"
#include "host/progress/progress_policy.h"

namespace verbena::host {

class HelperAlarm {
 public:
  // Both outlive this.
  HelperAlarm(const ProgressPolicy& policy, const HoldingPolicy& holding)
      : policy_(policy), holding_(holding) {}

  void start(std::unique_ptr<HelperThread> helper) { helper_ = std::move(helper); }
  [[nodiscard]] HelperThread* thread() const { return helper_.get(); }

  // Returns true if the last orders still hold. While calls come, the helper waits only for a
  // check, and gets new orders after it.
  [[nodiscard]] bool is_up_to_date(Time now) const {
    return policy_.next_check() == checked_ && knows_already(now);
  }
  // Returns true if the next check is not the one that the helper waits for, or comes soon: the
  // alarm is deferred, if polls have deferred the check.
  [[nodiscard]] bool is_check_near(Time now) const {
    return policy_.next_check() != checked_ || alarm_ - now < HelperThread::kNear;
  }
  // Notes the policy's next check. Returns false if the helper must be told.
  [[nodiscard]] bool note_check(Time now) {
    checked_ = policy_.next_check();
    return knows_already(now);
  }
  // Tells the helper, and tells `link` whether a thread sleeps on it. `device` and `others` are the
  // due times of the device's timers and of all others. Returns true if something has arrived for
  // which no descriptor wakes the helper.
  [[nodiscard]] bool tell(Link& link, Time device, Time others, Time now);
  void wake(Time now) { alarm_ = helper_->wake_at(now, now); }
  void on_wakeup() { alarm_ = Time::never(); }  // it may have been the alarm

 private:
  [[nodiscard]] bool knows_already(Time now) const {
    return !policy_.is_listened_to() && listening_ == Listening::kNo &&
           HelperThread::will_do(alarm_, next_look(now), now);
  }
  [[nodiscard]] Time next_look(Time now) const;
  [[nodiscard]] Time deadline(Time device, Time others, Time now) const;

  const ProgressPolicy& policy_;
  const HoldingPolicy& holding_;
  Time checked_;  // policy_.next_check(), as the helper knows it
  Listening listening_ = Listening::kYes;
  Time alarm_ = Time::never();
  std::unique_ptr<HelperThread> helper_;
};

}  // namespace verbena::host
