#include "host/progress/progress_policy.h"

#include <algorithm>
#include <utility>

namespace verbena::host {
namespace {

bool has_found(PollResult result) {
  return result == PollResult::kFound || result == PollResult::kFoundWithRequest;
}

}  // namespace

void ProgressPolicy::need_helper() {
  move(ReceiverEvent::kHelperNeeded);
  empty_polls_ = receipts_in_a_row_ = 0;
  check_interval_ = kMinCheck;
  polled_since_listening_ = received_since_listening_ = requested_since_help_ = false;
}

// The program's calls receive, and the helper only looks whether they still come.
void ProgressPolicy::leave_to_calls(Time now) {
  if (!is_left_to_helper()) return;
  waits_for_events_ = false;
  leave_helper(ReceiverEvent::kCallsSuffice, now);
}

// A thread of the program receives from now on.
void ProgressPolicy::leave_helper(ReceiverEvent event, Time now) {
  if (is_left_to_helper()) check_at(now + check_interval_);
  move(event);
}

void ProgressPolicy::on_application_poll(PollResult result, Time now) {
  ++polls_;
  judge_absence(now);
  judge_patience(result, now);
  judge_listening(now);
  judge_stay(result, now);
  if (has_found(result)) {
    empty_polls_ = 0;
    last_found_ = now;
    on_found(result, now);
  } else {
    ++empty_polls_;
  }
  if (empty_polls_ >= kSpinning || receipts_in_a_row_ >= kAlone) leave_to_calls(now);
  rest_while_awake(now);
  note_call(now);
}

void ProgressPolicy::on_application_post(Time now) {
  ++posts_;
  judge_absence(now);
  rest_while_awake(now);
}

// A helper would only compete for the core of a program that is awake.
void ProgressPolicy::rest_while_awake(Time now) {
  if (is_awake_) leave_to_calls(now);
}

// So that the helper need not wake while they come.
void ProgressPolicy::note_call(Time now) {
  if (!is_left_to_helper() && now >= next_check_ - check_interval_ / 2) check_later(now);
}

// A thread that stays or waits looks once more: no helper is needed as long as it does.
void ProgressPolicy::note_look(Time now) {
  ++polls_;
  note_call(now);
}

// Threads that sleep may rely on those that have their events only if these call often.
void ProgressPolicy::judge_absence(Time now) {
  if (!others_sleep_) return;
  if (now - std::exchange(last_call_, now) >= kAbsent) waits_in_a_row_ = 0;
}

void ProgressPolicy::on_found(PollResult result, Time now) {
  if (result == PollResult::kFoundWithRequest) {
    ++requests_in_a_row_;
    move(ReceiverEvent::kStayOver);  // of another thread
    return;
  }
  const bool breaks_row = std::exchange(requests_in_a_row_, 0) >= kPingPong;
  if (trust_ > 0 && spins_on_memory())
    leave_helper(ReceiverEvent::kPollStays, now);
  else if (trust_ > 0 || breaks_row)
    need_helper();
}

// A program that comes back after a pause has not waited yet, unless others had its core meanwhile.
void ProgressPolicy::judge_patience(PollResult result, Time now) {
  if (result != PollResult::kEmpty)
    empty_since_.reset();
  else if (!empty_since_ || (!offers_core_ && now > last_poll_ + kPatience))
    empty_since_ = now;
  const Duration gap = now - std::exchange(last_poll_, now);
  if (offers_core_) judge_offer(result, gap, now);
  offers_core_ = empty_since_ && now >= *empty_since_ + patience_ && is_next_offer(gap);
}

// An offer brings the answer only where the peer needs this very core. Where others took it for a
// time slice, the answer may have been there for long, and each poll would cost a slice.
void ProgressPolicy::judge_offer(PollResult result, Duration gap, Time now) {
  const bool cost_slice = gap >= CoreContention::kTaken;
  if (cost_slice || !was_taken(gap))
    patience_ = kPatience;
  else if (result != PollResult::kEmpty)
    patience_ = Duration();
  if (cost_slice && empty_since_) empty_since_ = now;
}

// After so long since the last poll, which may have offered the core. Has another taken it? To
// offer it costs a third of a poll.
bool ProgressPolicy::is_next_offer(Duration gap) {
  if (offers_core_) {
    offer_interval_ = was_taken(gap) ? 1 : std::min(offer_interval_ * 2, kMaxOfferInterval);
    polls_since_offer_ = 0;
  } else {
    plain_gap_ = gap;
  }
  return ++polls_since_offer_ >= offer_interval_;
}

// Was it of use that the helper listened since the last poll?
void ProgressPolicy::judge_listening(Time now) {
  if (!is_left_to_helper() || polled_since_listening_) return;
  polled_since_listening_ = true;
  if (received_since_listening_ && was_help_needed(now)) {
    trust_ = std::min(trust_ + kTrustWon, kTrust);
    memory_waits_ = std::min(memory_waits_ + 1, kMaxMemory);
  } else if (received_since_listening_) {
    trust_ -= std::min(trust_, kTrustLost);
  } else if (!received_in_stay_) {
    trust_ -= std::min(trust_, 1u);
  }
}

// Was it of use that the polling thread stayed? Not if the program could have polled it itself.
void ProgressPolicy::judge_stay(PollResult next_poll, Time now) {
  if (!std::exchange(received_in_stay_, false)) return;
  const bool finds_at_once = completes_ == Completes::kWhenSent && requested_since_help_;
  if ((finds_at_once || !has_found(next_poll)) && was_help_needed(now)) {
    trust_ = kTrust;
    memory_waits_ = std::min(memory_waits_ + 1, kMaxMemory);
  } else {
    trust_ -= std::min(trust_, 1u);
    memory_waits_ /= 2;
  }
}

void ProgressPolicy::on_stay(LookResult result, Time now) {
  note_look(now);
  received_in_stay_ = result == LookResult::kReceived;
  if (received_in_stay_) last_help_ = now;
  if (!received_in_stay_ && now < last_found_ + kLongestStay) return;
  if (!received_in_stay_) memory_waits_ /= 2;
  if (!received_in_stay_ && completes_ == Completes::kWhenSent)
    trust_ -= std::min(trust_, kTrustLost);
  need_helper();
}

bool ProgressPolicy::on_helper_wake(Time now) {
  if (now < next_check() && !is_listened_to()) return false;
  move(ReceiverEvent::kRestOver);
  if (is_listened_to()) return true;
  if (polls_ != polls_at_check_) {
    check_later(now);
    return false;
  }
  if (posts_ == posts_at_check_) waits_in_a_row_ = 0;
  need_helper();
  check_at(now + check_interval_);  // where a waiter looks, and others have its core
  return true;
}

void ProgressPolicy::check_at(Time when) {
  polls_at_check_ = polls_;
  posts_at_check_ = posts_;
  next_check_ = when;
}

void ProgressPolicy::check_later(Time now) {
  check_interval_ = std::min(check_interval_ * 2, kMaxCheck);
  check_at(now + check_interval_);
}

void ProgressPolicy::on_helper_received(Calls calls, Time now) {
  // The helper may listen all the time there, as no poll is empty: each receipt is judged.
  if (completes_ == Completes::kWhenSent) polled_since_listening_ = requested_since_help_ = false;
  received_since_listening_ = true;
  receipts_in_a_row_ = 0;
  note_receipt(now);
  last_help_ = now;
  polls_at_receive_ = polls_;
  if (is_awake_)
    leave_to_calls(now);
  else if (calls == Calls::kOften)
    rest(now);
}

void ProgressPolicy::rest(Time now) {
  move(ReceiverEvent::kCallsOften);
  if (receiver_ == Receiver::kRestingHelper) next_check_ = now + kRestAmongCalls;
}

void ProgressPolicy::note_receipt(Time now) {
  const Duration gap = now - last_receive_;
  linger_ = gap < kMaxLinger ? std::clamp(gap * 2, kLinger, kMaxLinger) : kLinger;
  last_receive_ = now;
}

bool ProgressPolicy::should_look_again(Time now) const {
  const bool is_alone = waits_for_events_ || is_awake_ || polls_ == polls_at_receive_;
  return (listens() || is_awake_) && is_alone && !waits_in_call_ && lingers(now) &&
         !contention_.is_core_wanted(now);
}

void ProgressPolicy::on_notification_request() {
  waits_in_call_ = is_awake_ = false;
  memory_waits_ = 0;
  requested_ = Requested::kSome;
  if (++requests_since_wait_ > kTrustedWaits) waits_in_a_row_ = 0;
  if (!waits_in_calls()) return on_application_sleep();
  waits_for_events_ = true;
}

// One thread receives for all, and the helper does not listen besides.
bool ProgressPolicy::on_wait(Time now) {
  ++polls_;
  waits_in_call_ = true;
  requests_since_wait_ = 0;
  if (receiver_ == Receiver::kLookingWaiter || receiver_ == Receiver::kSleepingWaiter) return false;
  judge_absence(now);
  others_sleep_ = false;
  waits_in_a_row_ = std::min(waits_in_a_row_ + 1, kTrustedWaits);
  waits_for_events_ = true;
  is_woken_ = has_slept_ = false;
  vain_wakes_ = 0;
  leave_helper(ReceiverEvent::kWaiterLooks, now);
  begin_looks(now);
  return true;
}

void ProgressPolicy::begin_looks(Time now) {
  offers_core_ = false;
  last_poll_ = now;
  note_call(now);
}

void ProgressPolicy::on_look_in_wait(LookResult result, Time now) {
  const bool is_woken = std::exchange(is_woken_, false);
  if (result == LookResult::kReceived) {
    note_receipt(now);
    last_help_ = now;
    vain_wakes_ = 0;
  } else if (is_woken) {
    ++vain_wakes_;
  }
  note_look(now);
  const bool is_next = is_next_offer(now - std::exchange(last_poll_, now));
  offers_core_ = is_next && !contention_.is_core_wanted(now);
}

void ProgressPolicy::on_wake_in_wait(Time now) {
  is_woken_ = true;
  check_later(now);
  move(ReceiverEvent::kWaiterLooks);
  begin_looks(now);
}

// Threads that spin will soon leave the helper no more than this one. Others may all sleep now.
void ProgressPolicy::on_vain_wakes(Time now) {
  leave_wait(now);
  need_helper();
}

void ProgressPolicy::on_wait_over(Sleepers others, Time now) {
  waits_with_sleep_ = has_slept_ ? waits_with_sleep_ + 1 : 0;
  others_sleep_ = others == Sleepers::kSome;
  if (others_sleep_) check_interval_ = kMinCheck;
  leave_wait(now);
  last_call_ = now;
  if (!waits_in_calls()) need_helper();
}

// Calls receive, and the helper looks soon whether any comes.
void ProgressPolicy::leave_wait(Time now) {
  move(ReceiverEvent::kWaiterLeaves);
  check_at(now + check_interval_);
}

}  // namespace verbena::host
