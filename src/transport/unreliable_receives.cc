#include "transport/unreliable_receives.h"

#include "memory/sg_walk.h"
#include "transport/completions.h"

namespace verbena {

UnreliableReceives::UnreliableReceives(const EngineParts& parts, EngineCounters& counters,
                                       ResponderFault& fault)
    : qp_(parts.attributes),
      memory_(parts.memory),
      copies_(parts.receive_copies),
      queue_(parts.receive_queue),
      shared_(parts.shared_receive_queue),
      srq_pd_(parts.srq_pd),
      counters_(counters),
      fault_(fault) {}

void UnreliableReceives::on_state(QPState) {
  halted_ = false;
  if (qp_.state != QPState::kReset) return;
  give_back();
  fault_ = {};
  fatal_event_ = false;
  if (!shared_) queue_.clear();
}

void UnreliableReceives::give_back() {
  if (shared_) queue_.free_entries(static_cast<u32>(cqes_.size()) + (holding_ ? 1 : 0));
  cqes_.clear();
  holding_ = false;
}

bool UnreliableReceives::accepting() const {
  switch (qp_.state) {
    case QPState::kReset:
    case QPState::kInit:
    case QPState::kError: return false;
    case QPState::kRTR:
    case QPState::kRTS:
    case QPState::kSQD:
    case QPState::kSQE: return !halted_;
  }
  CHECK_UNREACHABLE();
}

bool UnreliableReceives::acquire() {
  if (holding_) return true;
  holding_ = queue_.take(held_);
  if (holding_) ++taken_;
  return holding_;
}

bool UnreliableReceives::write(u64 offset, Bytes data) {
  CHECK(holding_);
  const PDId pd = srq_pd_.value_or(qp_.pd);
  if (copies_ != nullptr) copies_->mark({.psn = taken_, .is_receive = true});
  const MemoryFault fault = scatter(memory_, pd, held_.sg_list(), offset, data, copies_);
  if (fault == MemoryFault::kNone) return true;
  if (fault == MemoryFault::kLater) return false;
  fault_ = {.refusal = Refusal::kReceiveMemory,
            .wr_id = held_.wr_id,
            .message_bytes = offset + data.size(),
            .room_bytes = held_.length_bytes,
            .refused = find_refused(memory_, pd, held_.sg_list(), Access::kLocalWrite)};
  fail(WQEStatus::kLocalProtection);
  halted_ = fatal_event_ = true;
  return false;
}

void UnreliableReceives::on_copy_failed(const CopyMark& mark) {
  fault_ = {.refusal = Refusal::kReceiveMemory, .memory = MemoryFault::kGone};
  if (holding_ && mark.psn == taken_)
    fail(WQEStatus::kLocalProtection);
  else
    ++counters_.resp_cqe_error;
  halted_ = fatal_event_ = true;
}

void UnreliableReceives::complete(CQE cqe) {
  CHECK(holding_);
  holding_ = false;
  cqe.wr_id = held_.wr_id;
  cqe.qp = qp_.qpn;
  cqes_.push(cqe);
}

void UnreliableReceives::fail(WQEStatus status) {
  ++counters_.resp_cqe_error;
  complete(receive_cqe(held_.wr_id, qp_, status));
}

void UnreliableReceives::abandon(WQEStatus srq_status) {
  if (holding_ && shared_) fail(srq_status);
}

bool UnreliableReceives::poll_cqe(CQE& out) {
  if (cqes_.empty()) return qp_.state == QPState::kError && poll_flushed(out);
  out = cqes_.pop();
  return true;
}

// First the held WQE, then those of the QP's own queue; those of an SRQ stay for its other QPs.
bool UnreliableReceives::poll_flushed(CQE& out) {
  if (!holding_ && (shared_ || queue_.empty())) return false;
  out = receive_cqe(holding_ ? held_.wr_id : queue_.pop_wr_id(), qp_, WQEStatus::kFlushed);
  holding_ = false;
  return true;
}

std::optional<EngineEvent> UnreliableReceives::poll_event() {
  if (!fatal_event_) return std::nullopt;
  fatal_event_ = false;
  return EngineEvent::kFatal;
}

}  // namespace verbena
