// A requester's selective repeat: of the packets in flight, it repeats only those that the
// scoreboard considers lost (send_window.h).
//
// Peers differ in their answer to a gap. A peer with selective repeat sends SACKs. Any other sends
// the NAK of the standard, and the requester repeats everything. With such a peer this is
// go-back-N.
#include <algorithm>

#include "transport/rc/answer.h"
#include "transport/rc/requester.h"

namespace verbena {

void RCRequester::on_sack(const PacketView& packet, Time now) {
  Scoreboard* const board = window_.scoreboard();
  if (board == nullptr) return;  // none was requested
  const bool is_ahead = board->executed().before(packet.headers.bth.psn);
  board->on_missing(packet.headers.bth.psn);
  const bool all_answered = acknowledge_before(packet.headers.bth.psn, now);
  if (completer_.has_failed()) return;
  peer_.note_credits(packet.headers.aeth);
  const bool is_news = board->on_sack(packet.headers.sack, window_.frontier());
  if (!is_news && !is_ahead && all_answered) return;
  ++counters_.packet_seq_err;
  recovery_.restart_timer(now);
  look_again(now);
}

// As acknowledge_before(): all before `end` is executed, but answers may be missing.
bool RCRequester::acknowledge_executed(PSN end, Time now) {
  window_.scoreboard()->on_executed(end);
  window_.scoreboard()->on_heard(end);
  advance(now);
  return !window_.unacked().before(end);
}

// Acknowledges the completed packets at the front.
void RCRequester::advance(Time now) {
  const Scoreboard& board = *window_.scoreboard();
  while (!window_.is_acknowledged() && !completer_.has_failed()) {
    const SendWQE& wqe = window_.oldest();
    const PSN psn = window_.unacked();
    if (expects_response(wqe.wr.op)) {
      if (!board.has_answer(psn)) return;
      acknowledge_answered(wqe, now);
    } else {
      if (!board.is_executed(psn)) return;
      note_news(now);
      retire(wqe, std::min(psn.distance_to(board.executed()), window_.left_of(wqe, psn)), now);
    }
  }
}

// Returns the READ or atomic of this PSN, which is in flight; nullptr if its answer has arrived
// before, or there was none to expect (9.9.2.1).
SendWQE* RCRequester::unanswered(PSN psn) {
  SendWQE& wqe = window_.find(psn);
  if (!expects_response(wqe.wr.op)) {
    fail(WQEStatus::kBadResponse);
    return nullptr;
  }
  return window_.scoreboard()->has_answer(psn) ? nullptr : &wqe;
}

// Takes an answer in its place. Its request is executed, and so are all before.
void RCRequester::take_answer(const SendWQE& wqe, PSN psn, Time now) {
  Scoreboard& board = *window_.scoreboard();
  board.on_answer(psn);
  board.on_executed(psn.advanced(window_.psns_of_piece(wqe, psn)));
  board.on_heard(psn.next());
  recovery_.restart_timer(now);
  advance(now);
  if (!completer_.has_failed() && window_.unacked().before(psn)) look_again(now);
}

// Reacts to new information. A packet that is lost again without any progress consumes a retry.
void RCRequester::look_again(Time now) {
  // A later event makes it look again.
  if (!window_.waits_for_response() || recovery_.is_paused()) return;
  window_.move_back();
  if (!window_.scoreboard()->was_resent(window_.unacked()) || !window_.is_lost()) return;
  if (!recovery_.take_retry()) return fail(WQEStatus::kRetryExceeded);
  recovery_.restart_timer(now);
}

}  // namespace verbena
