// HoldingPolicy: may a packet wait in the link for others to go with it in one system call?
//
// One call to the kernel costs as much as building and checking some twenty small packets, and
// takes up to 64 of them. A card learns of each request by its own doorbell; here a program that
// posts many small requests one by one would pay for a call each. So a packet whose QP still waits
// for an earlier answer may be held back (Urgency::kWithMore), if the program calls again and again
// at short intervals: until one datagram call is full, or a poll finds nothing, or a packet comes
// that must not wait. If the program stops calling instead, the helper thread sends held packets
// after kPatience, and for some time, which doubles with each repetition, nothing is held back.
// A packet that waits for no earlier answer (Urgency::kFirst) is held back only among requests that
// are posted in a row, without a poll: those of many QPs.
//
// An acknowledgement (Urgency::kWithReply) costs a call, too, and where programs take turns the
// other side waits for the reply behind it. So it may be held back when it is due from a poll, if
// the program has lately replied with requests of its own, soon and each time: until the reply, or
// kVainPolls polls that find nothing: libraries poll until nothing is left, then tell their caller.
// TCP's delayed ACK of interactive connections is the same idea. What is soon depends on what a
// call takes, as waiting less long than that saves nothing: some us, or 100 us on an emulated
// processor.
//
// Pure logic: no thread, no clock. Not thread-safe.
#pragma once

#include <algorithm>
#include <utility>

#include "base/time.h"
#include "host/progress/doubling_rest.h"

namespace verbena::host {

class HoldingPolicy {
 public:
  // The application called, to post or in vain to poll.
  void on_call(Time now) {
    const bool soon = now - last_call_ <= kShort;
    calls_in_a_row_ = soon ? std::min(calls_in_a_row_ + 1, kMaxInARow)
                           : calls_in_a_row_ - std::min(calls_in_a_row_, kInARow);
    last_call_ = now;
  }
  void on_poll() { requests_in_a_row_ = 0; }
  // The call has taken so long. Only the program's own time counts between calls.
  void on_return(Time now) {
    if (now > last_call_) note_call(now - last_call_);
    last_call_ = now;
  }
  [[nodiscard]] bool may_hold(Time now) const {
    return calls_in_a_row_ >= kInARow && !rest_.lasts(now);
  }
  // The program goes on calling: it will soon call again.
  [[nodiscard]] bool is_called_often(Time now) const {
    return calls_in_a_row_ >= kInARow && now - last_call_ <= kShort;
  }

  // It posts and posts, and has not looked yet what became of it.
  [[nodiscard]] bool posts_on() const { return requests_in_a_row_ >= kInARow; }

  void on_held(Time now) {
    holds_requests_ = true;
    last_held_ = now;
    deadline_ = std::min(deadline_, now + kPatience);
  }
  void on_held_acknowledgement(Time now) {
    last_held_ = now;
    deadline_ = std::min(deadline_, now + kPatienceForReply);
  }
  void on_sent() {
    holds_requests_ = false;
    deadline_ = Time::never();
  }
  // Returns when held packets must go; never() if none are held.
  [[nodiscard]] Time deadline() const { return deadline_; }

  // Something was held of late, so that something will soon be again.
  [[nodiscard]] bool held_lately(Time now) const { return now < last_held_ + kLately; }

  [[nodiscard]] bool holds_requests() const { return holds_requests_; }

  // It became due while the program was polling, or with what woke it.
  void on_acknowledgement(Time now) {
    on_no_reply();
    awaits_reply_ = true;
    vain_polls_ = 0;
    acknowledgement_due_ = now;
  }
  // The program sends a request.
  void on_request(Time now) {
    ++requests_in_a_row_;
    if (!awaits_reply_) return;
    if (now - acknowledgement_due_ > soon_) return on_no_reply();
    awaits_reply_ = false;
    trust_ = std::min(trust_ + 1, kMaxTrust);
  }
  void on_vain_poll(Time now) {
    if (awaits_reply_ && ++vain_polls_ >= kVainPolls && now - acknowledgement_due_ >= call_)
      on_no_reply();
  }
  // Call it before the program's poll looks for packets. Returns true if held packets go now; an
  // acknowledgement stays if its reply may still come.
  [[nodiscard]] bool must_send_in_poll() const {
    return deadline_ != Time::never() && (holds_requests_ || !awaits_reply_);
  }
  [[nodiscard]] bool awaits_reply() const { return awaits_reply_; }
  [[nodiscard]] bool may_hold_acknowledgement() const { return trust_ >= kTrusted; }

  // The helper found it still there at the deadline.
  void on_overdue(Time now) {
    if (std::exchange(awaits_reply_, false)) trust_ = kBetrayed;
    if (!holds_requests_) return;
    rest_.begin(now);
  }

 private:
  void note_call(Duration took) {
    call_ = call_ + (took - call_) / kSmooth;
    soon_ = std::clamp(call_ * kSoonInCalls, kSoon, kPatienceForReply);
  }
  void on_no_reply() {
    if (std::exchange(awaits_reply_, false)) trust_ = std::min(trust_, std::max(trust_ - kLost, 0));
  }

  static constexpr u32 kInARow = 16, kMaxInARow = 64;
  static constexpr Duration kShort = us(10);
  static constexpr Duration kPatience = us(500), kLately = ms(4);
  static constexpr i32 kTrusted = 3, kMaxTrust = 16, kLost = 4, kBetrayed = -64;
  static constexpr u32 kVainPolls = 4;
  static constexpr Duration kSoon = us(100), kPatienceForReply = ms(1);
  static constexpr i64 kSoonInCalls = 4, kSmooth = 8;

  u32 calls_in_a_row_ = 0;
  u32 requests_in_a_row_ = 0;  // without a poll
  Time last_call_, last_held_;
  DoublingRest rest_;
  Time deadline_ = Time::never();
  bool holds_requests_ = false;

  bool awaits_reply_ = false;
  u32 vain_polls_ = 0;  // since then
  i32 trust_ = 0;       // that it replies
  Time acknowledgement_due_;
  Duration call_{};  // that one into the kernel takes, with what it brings
  Duration soon_ = kSoon;
};

}  // namespace verbena::host
