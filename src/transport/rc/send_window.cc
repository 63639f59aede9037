#include "transport/rc/send_window.h"

#include "transport/rc/answer.h"

namespace verbena {

namespace {

std::unique_ptr<Scoreboard> scoreboard_of(const RCLimits& limits) {
  if (limits.retransmission == Retransmission::kGoBackN) return nullptr;
  return std::make_unique<Scoreboard>(limits.most_psns(limits.path.window_packets),
                                      limits.reordering_packets);
}

}  // namespace

SendWindow::SendWindow(const SendQueueLimits& queue, const RCLimits& limits)
    : queue_(queue), scoreboard_(scoreboard_of(limits)) {}

void SendWindow::clear() {
  queue_.clear();
  done_ = fresh_ = index_ = queue_.begin_index();
}

void SendWindow::begin(PSN first, u32 chunk) {
  unacked_ = cursor_ = frontier_ = first;
  chunk_ = chunk;
  if (scoreboard_) scoreboard_->reset(first);
}

u32 SendWindow::psns_of_piece(const SendWQE& wqe, PSN psn) const {
  if (wqe.wr.op != SendOp::kRDMARead) return 1;
  const u32 packet = wqe.first_psn.distance_to(psn);
  return std::min(chunk_ - packet % chunk_, wqe.packets - packet);
}

u32 SendWindow::psns_to_request(const SendWQE& wqe, PSN psn) const {
  const u32 most = psns_of_piece(wqe, psn);
  if (scoreboard_ == nullptr || psn == frontier_ || !scoreboard_->is_executed(psn)) return most;
  u32 psns = 1;
  while (psns < most && !scoreboard_->has_answer(psn.advanced(psns))) ++psns;
  return psns;
}

void SendWindow::start(u32 packets) {
  SendWQE& wqe = queue_.at(fresh_++);
  wqe.packets = packets;
  wqe.first_psn = frontier_;
  wqe.last_psn = frontier_.advanced(packets - 1);
}

void SendWindow::send_single() {
  SendWQE& wqe = queue_.at(fresh_);
  wqe.packets = 1;
  wqe.first_psn = wqe.last_psn = cursor_;
  cursor_ = frontier_ = cursor_.next();
  index_ = ++fresh_;
}

void SendWindow::skip() {
  queue_.at(fresh_).packets = 0;
  index_ = ++fresh_;
}

void SendWindow::advance(const SendWQE& current, u32 psns) {
  const bool is_new = cursor_ == frontier_;
  if (psns == left_of(current, cursor_)) ++index_;
  cursor_ = cursor_.advanced(psns);
  if (is_new) frontier_ = cursor_;
}

SendWindow::Acknowledged SendWindow::acknowledge(const SendWQE& oldest, u32 psns) {
  const Acknowledged result{.ends_wqe = psns == left_of(oldest, unacked_),
                            .passes_cursor = in_flight() < psns};
  if (scoreboard_) scoreboard_->on_acknowledged(unacked_, psns);
  unacked_ = unacked_.advanced(psns);
  if (result.ends_wqe) ++done_;
  if (result.passes_cursor) move_back();
  return result;
}

void SendWindow::acknowledge_wqes(PSN end, u64 index) {
  unacked_ = end;
  done_ = index;
}

void SendWindow::complete_local() {
  while (done_ < fresh_ && queue_.at(done_).packets == 0) ++done_;
  if (index_ < done_) index_ = done_;
}

void SendWindow::move_back() {
  cursor_ = unacked_;
  index_ = done_;
}

// --- selective repeat

SendWQE& SendWindow::find(PSN psn) {
  u64 index = done_;
  while (queue_.at(index).packets == 0 || queue_.at(index).last_psn.before(psn)) ++index;
  return queue_.at(index);
}

bool SendWindow::skip_arrived() {
  const u64 index = index_;
  const PSN cursor = cursor_;
  while (resends()) {
    const SendWQE& wqe = current();
    const u32 psns = wqe.packets == 0 ? 0 : arrived(wqe);
    if (wqe.packets == 0)
      pass_local();
    else if (psns != 0)
      advance(wqe, psns);
    else
      break;
  }
  return cursor_ != cursor || index_ != index;
}

// Returns the PSNs of this WQE from the cursor on that have arrived or may still arrive; 0: lost.
u32 SendWindow::arrived(const SendWQE& wqe) const {
  const bool has_request = scoreboard_->is_there(cursor_) || !scoreboard_->request_is_lost(cursor_);
  if (!expects_response(wqe.wr.op)) return has_request ? 1 : 0;
  if (!scoreboard_->is_executed(cursor_)) return has_request ? psns_of_piece(wqe, cursor_) : 0;
  const bool has_answer =
      scoreboard_->has_answer(cursor_) || !scoreboard_->answer_is_lost(cursor_, frontier_);
  return has_answer ? 1 : 0;
}

}  // namespace verbena
