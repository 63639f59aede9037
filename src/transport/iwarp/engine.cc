#include "transport/iwarp/engine.h"

#include <algorithm>

#include "base/check.h"

namespace verbena::iwarp {

IWARPEngine::IWARPEngine(const EngineParts& parts, const IWARPLimits& limits)
    : qp_(parts.attributes),
      memory_(parts.memory),
      send_copies_(parts.send_copies),
      receive_copies_(parts.receive_copies),
      requester_(parts, counters_, fault_.requester, limits.max_ord),
      responder_(parts, counters_, fault_.responder, limits.max_ird),
      progress_(parts.local_progress) {}

void IWARPEngine::begin(const StreamAgreement& agreement, Time now) {
  agreement_ = agreement;
  const u32 segment = std::max(agreement.segment_bytes, 128u);
  max_ulpdu_ = std::min(
      agreement.sends_markers ? longest_marked_ulpdu(segment) : longest_ulpdu(segment), 0xfffcu);
  if (agreement.sends_markers)  // so that nothing is allocated later
    for (std::vector<u8>* const one : {&plain_, &marked_, &rest_}) one->reserve(segment);
  requester_.begin(agreement);
  responder_.begin(agreement);
  reader_.begin(agreement.crc ? CRCUse::kUsed : CRCUse::kNotUsed, agreement.receives_markers);
  cursor_ = {};
  cursor_.ready_is_before = agreement.to_send == ReadyToReceive::kNone;
  part_sent_ = 0;
  far_part_.clear();
  rest_.clear();
  rest_sent_ = 0;
  to_send_.reset();
  sent_.reset();
  received_.reset();
  is_open_ = true;
  sent_messages_ = received_messages_ = 0;
  if (progress_ != nullptr) progress_->note(qp_.qpn, PSN(received_messages_));
  fault_.stream = {};
  has_heard_ = !agreement.awaits_ready;
  ready_deadline_ = agreement.ready_patience ? now + *agreement.ready_patience : Time::never();
  peer_ended_ = is_broken_ = fatal_event_ = ended_event_ = false;
}

// A segment that was sent in part is sent whole: otherwise the bytes after it would have no
// meaning.
void IWARPEngine::on_state(QPState from, Time) {
  if (qp_.state == QPState::kError && is_open_) keep_rest();
  if (qp_.state == QPState::kReset) {
    is_open_ = false;
    has_heard_ = true;
    cursor_ = {};
    part_sent_ = 0;
    far_part_.clear();
    fatal_event_ = ended_event_ = false;
  }
  requester_.on_state(from);
  responder_.on_state(from);
}

void IWARPEngine::on_timer(Time now) {
  if (now >= ready_deadline_) has_heard_ = true;
  if (now >= requester_.next_timer()) requester_.on_timer();
  if (is_open_) note_progress();  // a copy may have ended
}

std::optional<EngineEvent> IWARPEngine::poll_event() {
  if (std::exchange(fatal_event_, false)) return EngineEvent::kFatal;
  if (std::exchange(ended_event_, false)) return EngineEvent::kEnded;
  if (requester_.take_drained()) return EngineEvent::kSQDrained;
  return responder_.poll_event();
}

// The peer sends no more. Between two segments that is its wish; else something is lost.
void IWARPEngine::on_end(StreamEnd how, Time) {
  if (!is_open_ || peer_ended_) return;
  peer_ended_ = true;
  if (how == StreamEnd::kLost) is_broken_ = true;
  const bool is_orderly = how == StreamEnd::kFinished && reader_.is_at_boundary();
  const bool is_expected = is_orderly || qp_.state == QPState::kError;
  if (!is_expected) fault_.stream = {.what = StreamFault::What::kLost};
  (is_expected ? ended_event_ : fatal_event_) = true;
}

bool IWARPEngine::wants_end() const {
  if (!is_open_ || is_broken_) return true;
  const bool has_rest = rest_sent_ < rest_.size() || part_sent_ != 0;
  if (sent_) return !has_rest;
  return qp_.state == QPState::kError && !has_rest && !to_send_;
}

}  // namespace verbena::iwarp
