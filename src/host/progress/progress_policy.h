// ProgressPolicy: decides which thread receives: the application's threads in ibv_poll_cq, or the
// helper thread.
//
// While the helper listens, its epoll watches the link and any packet wakes it. That costs 7 us for
// the sender's core and 21 us until it runs, so it must not listen while an application thread
// spins in ibv_poll_cq. But a program may stop polling at any time (to wait in memory for a WRITE,
// or in read()), so a backstop looks, 1 to 4 ms after the last polls, whether more have come.
// Programs like ib_write_lat poll, then spin on memory, then poll again. If the helper was of use
// between polls, it listens again right after a poll that found something, not only at the
// backstop. If the program has waited in memory again and again, waking it is saved, too: the
// polling thread stays for a while and itself receives the packet that the program will next wait
// for. The program spins, and the helper might wait a time slice for its core. If each completion
// came with a request and now one comes without, the program will wait for the request.
//
// The helper was of use if the program waited in memory. Such a program goes on with a request of
// its own, or was away for long. A program that only polls on would have received the packet
// itself: the helper has only competed with it for the lock and the core. MPI programs do both, so
// the policy counts how often each happens.
// A thread whose polls receive everything needs no helper: for example one thread that serves both
// ends of a connection, or a server whose next request is there already.
//
// A program that posts one request after the other polls seldom. Packets that arrive meanwhile,
// mostly acknowledgements, are not urgent: to receive each at once would cost two core switches. So
// the helper then rests a while after it has received, as cards moderate their interrupts.
//
// A program that waits for completion events is awake from the event until it requests the next
// one, wherever it sleeps: in ibv_get_cq_event or in epoll_wait on the channel's descriptor. While
// no request is outstanding its calls receive, and only the backstop looks. A thread that waits in
// ibv_get_cq_event, a waiter, receives itself: it looks for a while, and then sleeps on the link's
// descriptors, so that a packet wakes it and not the helper. One waiter does so for all; others
// sleep until their own event. For programs that sleep elsewhere the helper stays awake for as long
// as a waiter looks, unless others want its core. A waiter offers its core between two looks, since
// its peer may need it; but not for a while after others have kept it for a time slice. Then it
// looks only where that has brought its event, and sleeps at once if the peer needs this core; it
// tries again now and then.
//
// A program that has polled for long and found nothing may wait for a process that needs its core:
// where there are more spinning processes than cores, each would use up its time slice while the
// packet that it waits for cannot be made. So the polling thread then offers its core to others: at
// each poll while they take it, less often where they do not, and after as long again where they
// have kept it for a time slice. If an answer is there after an offer that others took, the next
// offers come at once: the peer runs on the same core.
//
// The mode, and what changes it, is receiver.h; the rest is what the policy has observed, from
// which it decides.
//
// Pure logic: no thread, no clock. Not thread-safe. After any call, re-read listens(),
// is_listened_to() and next_check().
#pragma once

#include <optional>

#include "base/time.h"
#include "host/progress/core_contention.h"
#include "host/progress/receiver.h"

namespace verbena::host {

enum class PollResult {
  kEmpty,
  kReceived,  // packets, and nothing that is complete by them
  kFound,
  kFoundWithRequest,  // a peer's request was executed with it: nothing to wait for in memory
};
enum class LookResult { kReceived, kNothing };
enum class Sleepers { kNone, kSome };   // other threads that wait for events
enum class Calls { kOften, kSeldom };   // how the program calls just now
enum class Requested { kNone, kSome };  // completion events that are not due yet

// When a request is complete: answered by the peer (RoCE), so that a program that polls for that
// receives; or as soon as it is sent (iWARP), so that its first poll finds it.
enum class Completes { kWhenAnswered, kWhenSent };

class ProgressPolicy {
 public:
  explicit ProgressPolicy(Completes completes = Completes::kWhenAnswered) : completes_(completes) {}

  [[nodiscard]] Receiver receiver() const { return receiver_; }
  // Should the helper's epoll watch the link?
  [[nodiscard]] bool listens() const { return receiver_ == Receiver::kHelper; }
  // Does a thread sleep until the link has something: the helper, or a waiter?
  [[nodiscard]] bool is_listened_to() const {
    return listens() || receiver_ == Receiver::kSleepingWaiter;
  }
  // When the helper must wake to look after the application; never() while a thread listens.
  [[nodiscard]] Time next_check() const { return is_listened_to() ? Time::never() : next_check_; }

  // Should the poll receive, for which there was something already, or nothing? Now and then also
  // where there was: what is copied completes at once, so that a program may find more each time,
  // while other QPs wait for packets.
  [[nodiscard]] bool should_receive_in_poll(bool found) {
    finds_in_a_row_ = found ? finds_in_a_row_ + 1 : 0;
    return finds_in_a_row_ % kFindsWithoutLook == 0;
  }
  // The poll that is about to be told of has received packets itself.
  void on_receipt_in_poll(Time now) {
    ++receipts_in_a_row_;
    note_receipt(now);
  }
  void on_application_poll(PollResult result, Time now);
  void on_application_post(Time now);  // of anything
  void on_application_request() {      // which it has posted
    requested_since_help_ |= received_since_listening_ || received_in_stay_;
  }
  [[nodiscard]] bool waits_for_events() const { return waits_for_events_; }
  // To be told before the calls below, and on_application_poll() and on_application_post().
  void on_requested(Requested requested) {
    if (requested_ == Requested::kSome && requested == Requested::kNone) is_awake_ = true;
    requested_ = requested;
  }
  // It is about to wait, for a notification it has asked for, or for a connection.
  void on_notification_request();
  void on_application_sleep() {
    is_awake_ = false;
    need_helper();
    waits_for_events_ = true;
  }

  // A thread waits in a call of ours for an event. Should it receive, for all that wait? Then it
  // looks as long as it should, sleeps, looks when the link has woken it, and so on, until it
  // leaves.
  [[nodiscard]] bool on_wait(Time now);
  [[nodiscard]] bool should_look_in_wait(Time now) const {
    const bool may_pay = !contention_.is_core_wanted(now) || waits_with_sleep_ < kVainLooks ||
                         waits_with_sleep_ % kLookAgain == 0;
    return receiver_ == Receiver::kLookingWaiter && may_pay && lingers(now);
  }
  void on_look_in_wait(LookResult result, Time now);
  // Returns false if other threads have received all that woke it: they may spin.
  [[nodiscard]] bool should_sleep_on_link() const { return vain_wakes_ < kVainWakes; }
  void on_sleep_in_wait() {
    has_slept_ = true;
    move(ReceiverEvent::kWaiterSleeps);
  }
  void on_wake_in_wait(Time now);
  void on_vain_wakes(Time now);  // it sleeps until its event from now on
  // The waiter has received events of other threads, and not its own. Returns true if it leaves the
  // link to their calls and sleeps until its event: on_wait_over() follows.
  [[nodiscard]] bool should_leave_to_woken() const { return waits_in_calls(); }
  // It has its event, or something else ends its wait.
  void on_wait_over(Sleepers others, Time now);

  // After a poll that found something: should its thread receive a little longer before it returns?
  [[nodiscard]] bool should_stay() const { return receiver_ == Receiver::kStayingPoll; }
  void on_stay(LookResult result, Time now);  // it looked once more
  // The stay is long: others may have the core between two looks.
  [[nodiscard]] bool should_offer_core_in_stay(Time now) const {
    return now >= last_found_ + kPatience;
  }

  // After an empty poll, or a look: should its thread offer the core to others, before the next?
  [[nodiscard]] bool should_offer_core() const { return offers_core_; }
  void skip_offer() { offers_core_ = false; }  // its thread does not, this time

  // The helper woke, for whatever reason. Should it receive now?
  [[nodiscard]] bool on_helper_wake(Time now);
  void on_helper_received(Calls calls, Time now);
  // The helper found the link empty, or left it to a program that is awake: should it look again,
  // after it has offered the core to others? Going to sleep and being woken costs more than a few
  // looks, but only where nobody needs the core.
  [[nodiscard]] bool should_look_again(Time now) const;
  // A waiter had offered the core, and had it back after so long; or the helper.
  void on_core_returned(Time before, Time now) { contention_.on_core_returned(before, now); }
  void on_core_returned_to_helper(Time before, Time now) {
    contention_.on_core_returned(before, now, kTakenFromHelper);
  }

 private:
  static constexpr u32 kFindsWithoutLook = 32;
  static constexpr u32 kSpinning = 3;  // empty polls in a row
  static constexpr u32 kAlone = 64;    // receipts in polls, and none by the helper
  static constexpr u32 kPingPong = 8;  // requests in a row
  static constexpr u32 kTrust = 64;    // useless listenings until we stop doing it, at most
  static constexpr u32 kTrustWon = 16, kTrustLost = 8;       // by help that was needed, or was not
  static constexpr u32 kTrustedMemory = 4, kMaxMemory = 16;  // waits in memory
  static constexpr Duration kLongestStay = us(500);
  static constexpr Duration kAway = us(500);  // then others wait for the program
  // Longer than an answer takes that is on its way, and far shorter than a time slice.
  static constexpr Duration kPatience = us(100);
  static constexpr u32 kMaxOfferInterval = 16;  // polls
  // An offer that took so much longer than no offer was taken.
  static constexpr i64 kTaken = 3;
  static constexpr Duration kMinCheck = ms(1), kMaxCheck = ms(4);
  static constexpr Duration kLinger = us(50), kMaxLinger = us(150);
  // A shorter absence may be the work of the program's own threads, for which the helper looks.
  static constexpr Duration kTakenFromHelper = ms(2);
  static constexpr u32 kTrustedWaits = 8;  // in calls, and none elsewhere or late
  static constexpr u32 kVainWakes = 8;     // in a row
  static constexpr u32 kVainLooks = 2;     // in a row, each until it slept
  static constexpr u32 kLookAgain = 16;    // waits, until it looks again
  static constexpr Duration kAbsent = us(200);
  static constexpr Duration kRestAmongCalls = us(100);

  void move(ReceiverEvent event) { receiver_ = next_receiver(receiver_, event); }
  // Returns true if the helper receives, now or after its rest.
  [[nodiscard]] bool is_left_to_helper() const {
    return listens() || receiver_ == Receiver::kRestingHelper;
  }
  void need_helper();
  void leave_to_calls(Time now);
  void leave_helper(ReceiverEvent event, Time now);
  void on_found(PollResult result, Time now);
  void check_at(Time when);
  void check_later(Time now);
  void note_call(Time now);
  void note_look(Time now);
  void judge_absence(Time now);
  void begin_looks(Time now);
  void leave_wait(Time now);
  void rest_while_awake(Time now);
  void rest(Time now);
  void note_receipt(Time now);
  [[nodiscard]] bool waits_in_calls() const { return waits_in_a_row_ >= kTrustedWaits; }
  [[nodiscard]] bool lingers(Time now) const { return now < last_receive_ + linger_; }
  void judge_patience(PollResult result, Time now);
  void judge_offer(PollResult result, Duration gap, Time now);
  [[nodiscard]] bool is_next_offer(Duration gap);
  [[nodiscard]] bool was_taken(Duration gap) const { return gap > plain_gap_ * kTaken; }
  void judge_listening(Time now);
  void judge_stay(PollResult next_poll, Time now);
  [[nodiscard]] bool was_help_needed(Time now) const {
    return requested_since_help_ || now >= last_help_ + kAway;
  }
  [[nodiscard]] bool spins_on_memory() const { return memory_waits_ >= kTrustedMemory; }

  Completes completes_;

  Receiver receiver_ = Receiver::kHelper;
  u32 finds_in_a_row_ = 0;  // polls
  u32 empty_polls_ = 0, receipts_in_a_row_ = 0;
  u64 polls_ = 0, polls_at_check_ = 0;
  u64 posts_ = 0, posts_at_check_ = 0;
  Duration check_interval_ = kMinCheck;
  Time next_check_ = Time::never();  // or the end of the rest

  bool offers_core_ = false;
  Duration patience_ = kPatience;    // before the first offer
  std::optional<Time> empty_since_;  // all polls since have found nothing
  Time last_poll_;

  u32 requests_in_a_row_ = 0;  // polls that found, each with a request

  bool polled_since_listening_ = true;
  bool received_since_listening_ = false;
  Time last_help_;  // what the program did not receive itself
  bool requested_since_help_ = false;
  u32 trust_ = 0;  // in listening between polls

  bool received_in_stay_ = false;  // and the next poll has not been seen yet
  u32 memory_waits_ = 0;           // of late; none by a program that waits for events
  Time last_found_;

  bool waits_for_events_ = false;  // and has not spun since
  bool waits_in_call_ = false;     // for those events
  u32 waits_in_a_row_ = 0;         // in calls
  u32 requests_since_wait_ = 0;    // for notifications, of several CQs or of one
  bool is_woken_ = false;          // a waiter, by the link, and has not looked yet
  u32 vain_wakes_ = 0;             // in a row: others had received the packet
  bool has_slept_ = false;         // in this wait
  u32 waits_with_sleep_ = 0;       // in a row
  bool others_sleep_ = false;      // until their events, and no thread waits for the link
  Time last_call_;                 // since then
  Requested requested_ = Requested::kNone;
  bool is_awake_ = false;  // all events that it has requested have come
  u64 polls_at_receive_ = 0;
  Time last_receive_;
  Duration linger_ = kLinger;
  CoreContention contention_;

  u32 polls_since_offer_ = 0, offer_interval_ = 1;
  Duration plain_gap_{};  // between two polls without an offer
};

}  // namespace verbena::host
