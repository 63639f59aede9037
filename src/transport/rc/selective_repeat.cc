// A requester's selective repeat: of the packets in flight, it repeats only those that the
// scoreboard considers lost. When the peer reports something new, the cursor moves back to the
// oldest packet. From there it passes over all packets that have arrived or may still arrive, to
// the next lost one, or to the frontier.
//
// Peers differ in their answer to a gap. A peer with selective repeat sends SACKs. Any other sends
// the NAK of the standard, and the requester repeats everything. With such a peer this is
// go-back-N.
#include <algorithm>

#include "transport/rc/answer.h"
#include "transport/rc/requester.h"

namespace verbena {

namespace {

// So many losses in one round trip, one in this share of the window, show that the path is
// overloaded and not that a link is bad. (BBR allows for 2 %, draft-ietf-ccwg-bbr, 5.5.1; windows
// of few packets need more.)
constexpr u32 kBurstShare = 8;

}  // namespace

void RCRequester::on_sack(const PacketView& packet, Time now) {
  if (!scoreboard_) return;  // none was requested
  const bool is_ahead = scoreboard_->executed().before(packet.headers.bth.psn);
  scoreboard_->on_missing(packet.headers.bth.psn);
  const bool all_answered = acknowledge_before(packet.headers.bth.psn, now);
  if (failed_) return;
  note_credits(packet.headers.aeth);
  const bool is_news = scoreboard_->on_sack(packet.headers.sack, frontier_);
  if (!is_news && !is_ahead && all_answered) return;
  ++counters_.packet_seq_err;
  timer_base_ = now;
  look_again(now);
}

// As acknowledge_before(): all before `end` is executed, but answers may be missing.
bool RCRequester::acknowledge_executed(PSN end, Time now) {
  scoreboard_->on_executed(end);
  scoreboard_->on_heard(end);
  advance(now);
  return !unacked_.before(end);
}

// Acknowledges the completed packets at the front.
void RCRequester::advance(Time now) {
  while (unacked_ != frontier_ && !failed_) {
    const SendWQE& wqe = queue_.at(done_);
    if (!expects_response(wqe.wr.op)) {
      if (!scoreboard_->is_executed(unacked_)) return;
      progress(std::min(unacked_.distance_to(scoreboard_->executed()),
                        unacked_.distance_to(wqe.last_psn) + 1),
               now);
    } else if (scoreboard_->has_answer(unacked_)) {
      free_answered(wqe, now);
    } else {
      return;
    }
  }
}

// Returns the READ or atomic of this PSN, which is in flight; nullptr if its answer has arrived
// before, or there was none to expect (9.9.2.1).
SendWQE* RCRequester::unanswered(PSN psn) {
  u64 index = done_;
  while (queue_.at(index).packets == 0 || queue_.at(index).last_psn.before(psn)) ++index;
  SendWQE& wqe = queue_.at(index);
  if (!expects_response(wqe.wr.op)) {
    fail(WQEStatus::kBadResponse);
    return nullptr;
  }
  return scoreboard_->has_answer(psn) ? nullptr : &wqe;
}

// Takes an answer in its place. Its request is executed, and so are all before.
void RCRequester::take_answer(const SendWQE& wqe, PSN psn, Time now) {
  scoreboard_->on_answer(psn);
  scoreboard_->on_executed(psn.advanced(psns_of_piece(wqe, psn)));
  scoreboard_->on_heard(psn.next());
  timer_base_ = now;
  advance(now);
  if (!failed_ && unacked_.before(psn)) look_again(now);
}

// Reacts to new information. A packet that is lost again without any progress consumes a retry.
void RCRequester::look_again(Time now) {
  if (!waits_for_response() || rnr_until_) return;  // a later event makes it look again
  const SendWQE& oldest = queue_.at(done_);
  cursor_ = unacked_;
  cursor_index_ = done_;
  if (!scoreboard_->was_resent(unacked_) || arrived(oldest) != 0) return;
  if (retries_left_ == 0) return fail(WQEStatus::kRetryExceeded);
  --retries_left_;
  timer_base_ = now;
}

// Moves the cursor to the next lost packet, or to the frontier. Returns false if it is there.
bool RCRequester::skip_arrived() {
  const u64 index = cursor_index_;
  const PSN cursor = cursor_;
  while (resends()) {
    const SendWQE& wqe = queue_.at(cursor_index_);
    if (wqe.packets != 0) {
      const u32 psns = arrived(wqe);
      if (psns == 0) break;
      const bool ends = cursor_.distance_to(wqe.last_psn) + 1 == psns;
      cursor_ = cursor_.advanced(psns);
      if (!ends) continue;
    }
    ++cursor_index_;
  }
  return cursor_ != cursor || cursor_index_ != index;
}

// Returns the PSNs of this WQE from the cursor on that have arrived or may still arrive; 0: lost.
u32 RCRequester::arrived(const SendWQE& wqe) const {
  if (!expects_response(wqe.wr.op))
    return scoreboard_->is_there(cursor_) || !scoreboard_->request_is_lost(cursor_) ? 1 : 0;
  if (scoreboard_->is_executed(cursor_))
    return scoreboard_->has_answer(cursor_) || !scoreboard_->answer_is_lost(cursor_, frontier_) ? 1
                                                                                                : 0;
  const bool may_come = scoreboard_->is_there(cursor_) || !scoreboard_->request_is_lost(cursor_);
  return may_come ? psns_of_piece(wqe, cursor_) : 0;
}

// If the peer has executed a READ, the requester asks only for the missing part. A READ that the
// peer may never have received must be sent whole: its length gives its PSNs.
u32 RCRequester::unanswered_psns(u32 most) const {
  if (!resends() || !scoreboard_->is_executed(cursor_)) return most;
  u32 psns = 1;
  while (psns < most && !scoreboard_->has_answer(cursor_.advanced(psns))) ++psns;
  return psns;
}

void RCRequester::note_resent(u32 psns, Time now) {
  probe_timer_.on_resent();
  scoreboard_->on_resent(cursor_, psns, frontier_);
  note_lost(psns, now);
}

// Reports the losses of a round trip to congestion control once. The window closes if they are
// many.
void RCRequester::note_lost(u32 psns, Time now) {
  if (!unacked_.before(losses_until_)) {
    losses_until_ = frontier_;
    losses_ = 0;
    if (ack_signals_) ack_signals_->on_nak(now);
  }
  const u32 burst = std::max(1u, unacked_.distance_to(frontier_) / kBurstShare);
  const bool was_burst = losses_ > burst;
  losses_ += psns;
  if (!was_burst && losses_ > burst) note_loss();
}

}  // namespace verbena
