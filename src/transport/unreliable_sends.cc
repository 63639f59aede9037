#include "transport/unreliable_sends.h"

#include "transport/completions.h"
#include "transport/local_operations.h"

namespace verbena {
namespace {

// IBTA 10.3.1, C10-21: not before RTS. SQE and Error accept sends, to flush them.
bool takes_sends(QPState state) {
  switch (state) {
    case QPState::kReset:
    case QPState::kInit:
    case QPState::kRTR: return false;
    case QPState::kRTS:
    case QPState::kSQD:
    case QPState::kSQE:
    case QPState::kError: return true;
  }
  CHECK_UNREACHABLE();
}

}  // namespace

UnreliableSends::UnreliableSends(const EngineParts& parts, EngineCounters& counters,
                                 RequesterFault& fault, Addressing addressing)
    : qp_(parts.attributes),
      memory_(parts.memory),
      counters_(counters),
      fault_(fault),
      queue_(parts.send_limits, addressing) {}

PostError UnreliableSends::post(const SendWR& wr, Time now) {
  return takes_sends(qp_.state) ? queue_.push(wr, now) : PostError::kBadState;
}

void UnreliableSends::on_state(QPState) {
  halted_ = false;
  draining_ = qp_.state == QPState::kSQD;
  if (qp_.state == QPState::kSQE || qp_.state == QPState::kError) begun_ = false;
  if (qp_.state == QPState::kReset) forget();
}

void UnreliableSends::forget() {
  queue_.clear();
  next_ = queue_.end_index();
  begun_ = error_event_ = false;
  fault_ = {};
  failure_ = WQEStatus::kSuccess;
}

bool UnreliableSends::may_transmit() const {
  if (halted_ || next_ == queue_.end_index()) return false;
  return qp_.state == QPState::kRTS || (qp_.state == QPState::kSQD && begun_);
}

const SendWQE* UnreliableSends::current() {
  while (may_transmit()) {
    const SendWQE& wqe = queue_.at(next_);
    begun_ = true;
    if (!is_local_operation(wqe.wr.op)) return &wqe;
    finish(execute_local_operation(wqe, qp_, memory_));
  }
  return nullptr;
}

void UnreliableSends::finish(WQEStatus status) {
  begun_ = false;
  if (status == WQEStatus::kSuccess) {
    ++next_;
    return;
  }
  failure_ = status;
  const SendWQE& wqe = queue_.at(next_);
  fault_ = requester_fault(status, wqe.wr, wqe.length_bytes, wqe.posted);
  if (status == WQEStatus::kLocalProtection)
    fault_.refused = find_refused(memory_, qp_.pd, wqe.wr.sg_list, Access::kLocalRead);
  halted_ = error_event_ = true;
  ++counters_.req_cqe_error;
}

// Returns nullopt if the oldest WQE is not complete.
std::optional<WQEStatus> UnreliableSends::status_of_oldest() const {
  if (queue_.begin_index() != next_) return WQEStatus::kSuccess;
  if (failure_ != WQEStatus::kSuccess) return failure_;
  if (qp_.state == QPState::kSQE || qp_.state == QPState::kError) return WQEStatus::kFlushed;
  return std::nullopt;
}

void UnreliableSends::retire_oldest() {
  if (queue_.begin_index() == next_) {
    ++next_;
    failure_ = WQEStatus::kSuccess;
  }
  queue_.pop_front();
}

bool UnreliableSends::poll_cqe(CQE& out) {
  while (!queue_.empty()) {
    const std::optional<WQEStatus> status = status_of_oldest();
    if (!status.has_value()) return false;
    const SendWQE& wqe = queue_.front();
    count_completion(wqe, qp_, *status);
    const bool visible = completes_visibly(wqe, qp_, *status);
    if (visible) out = send_cqe(wqe, qp_, *status);
    retire_oldest();
    if (!visible) continue;
    out.entries = queue_.take_unreported();
    return true;
  }
  return false;
}

std::optional<EngineEvent> UnreliableSends::poll_event() {
  if (error_event_) {
    error_event_ = false;
    return EngineEvent::kSQError;
  }
  if (!draining_ || begun_ || queue_.begin_index() != next_) return std::nullopt;
  draining_ = false;
  return EngineEvent::kSQDrained;
}

}  // namespace verbena
