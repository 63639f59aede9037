#include "transport/rc/scoreboard.h"

namespace verbena {

namespace {

void raise(PSN& mark, PSN to) {
  if (mark.before(to)) mark = to;
}

}  // namespace

Scoreboard::Scoreboard(u32 window_packets, u32 reordering_packets)
    : window_(window_packets),
      reordering_(reordering_packets),
      kept_(window_packets),
      answered_(window_packets),
      resent_(window_packets) {}

void Scoreboard::reset(PSN first) {
  for (PSNSet* const set : {&kept_, &answered_, &resent_}) set->clear();
  executed_ = kept_end_ = answered_end_ = forced_end_ = first;
  last_sent_ = first.previous();
}

void Scoreboard::on_executed(PSN end) {
  raise(executed_, end);
  raise(kept_end_, end);
}

void Scoreboard::on_missing(PSN psn) {
  on_executed(psn);
  if (psn == executed_) kept_.remove(psn);
}

void Scoreboard::on_heard(PSN end) { raise(answered_end_, end); }

bool Scoreboard::on_sack(const SackETH& sack, PSN frontier) {
  bool is_news = false;
  for (u64 bits = sack.bits; bits != 0; bits &= bits - 1) {
    const PSN psn = sack.first.advanced(static_cast<u32>(std::countr_zero(bits)));
    if (is_there(psn) || !psn.before(frontier) || executed_.distance_to(psn) >= window_) continue;
    kept_.add(psn);
    raise(kept_end_, psn.next());
    is_news = true;
  }
  return is_news;
}

void Scoreboard::on_resent(PSN psn, u32 psns, PSN frontier) {
  if (resent_before_ == nullptr) resent_before_ = std::make_unique<PSN[]>(resent_.slots());
  for (u32 i = 0; i < psns; ++i) {
    const PSN at = psn.advanced(i);
    resent_.add(at);
    resent_before_[resent_.slot(at)] = frontier;
  }
}

void Scoreboard::on_acknowledged(PSN psn, u32 psns) {
  const PSN end = psn.advanced(psns);
  for (PSN at = psn; at != end; at = at.next())
    for (PSNSet* const set : {&kept_, &answered_, &resent_}) set->remove(at);
  for (PSN* const mark : {&executed_, &kept_end_, &answered_end_, &forced_end_}) raise(*mark, end);
}

// Repeats once more all that was repeated before, and the oldest even if the peer has reported that
// it has it.
void Scoreboard::force(PSN end) {
  kept_.remove(executed_);
  resent_.clear();
  raise(forced_end_, end);
}

// Returns true if a packet that was sent later has arrived. Packets that were sent once are ordered
// by their PSNs.
bool Scoreboard::is_overtaken(PSN psn, PSN end) const {
  const PSN sent_before = resent_.has(psn) ? resent_before_[resent_.slot(psn)] : psn.next();
  return sent_before.advanced(reordering_).before(end);
}

bool Scoreboard::request_is_lost(PSN psn) const {
  if (is_forced(psn) || is_overtaken(psn, kept_end_)) return true;
  // Once the last packet has arrived, nothing will overtake it any more.
  return !resent_.has(psn) && psn != last_sent_ && last_sent_.before(kept_end_);
}

bool Scoreboard::answer_is_lost(PSN psn, PSN frontier) const {
  if (is_forced(psn) || is_overtaken(psn, answered_end_)) return true;
  return !resent_.has(psn) && answered_end_ == frontier;
}

}  // namespace verbena
