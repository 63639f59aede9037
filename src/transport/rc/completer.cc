#include "transport/rc/completer.h"

#include "base/check.h"
#include "memory/sg_walk.h"
#include "transport/completions.h"

namespace verbena {

void Completer::reset() {
  stopped_at_.reset();
  failed_.reset();
  fatal_pending_ = drain_reported_ = answered_ = false;
  fault_ = {};
}

void Completer::fail(SendWindow& window, WQEStatus status) {
  CHECK(window.done() < window.queue().end_index());
  failed_ = window.done();
  failed_status_ = status;
  note_fault(window, window.oldest(), status);
  fatal_pending_ = true;
  ++counters_.req_cqe_error;
}

void Completer::note_fault(const SendWindow& window, const SendWQE& wqe, WQEStatus status) {
  if (fault_.status != WQEStatus::kSuccess) return;
  fault_ = requester_fault(status, wqe.wr, wqe.length_bytes, wqe.posted);
  fault_.answered = answered_;
  fault_.started = window.done() < window.fresh();
  if (status == WQEStatus::kLocalProtection)
    fault_.refused =
        find_refused(memory_, qp_.pd, wqe.wr.sg_list,
                     returns_data(wqe.wr.op) ? Access::kLocalWrite : Access::kLocalRead);
}

bool Completer::poll_cqe(SendWindow& window, u64 done, CQE& out) {
  SendQueue& queue = window.queue();
  while (!queue.empty()) {
    const u64 index = queue.begin_index();
    WQEStatus status = WQEStatus::kSuccess;
    if (index >= done) {
      if (failed_ == index)
        status = failed_status_;
      else if (qp_.state == QPState::kError)
        status = WQEStatus::kFlushed;
      else
        return false;
    }
    const SendWQE& wqe = queue.front();
    count_completion(wqe, qp_, status);
    // Work that was posted to a QP already in Error is a mistake; earlier work is not.
    if (status == WQEStatus::kFlushed && wqe.posted > entered_error_)
      note_fault(window, wqe, status);
    const bool visible = completes_visibly(wqe, qp_, status);
    if (visible) out = send_cqe(wqe, qp_, status);
    queue.pop_front();
    if (!visible) continue;
    out.entries = queue.take_unreported();
    return true;
  }
  return false;
}

std::optional<EngineEvent> Completer::poll_event(bool is_drained) {
  if (fatal_pending_) {
    fatal_pending_ = false;
    return EngineEvent::kFatal;
  }
  if (!is_draining() || !is_drained) return std::nullopt;
  drain_reported_ = true;
  return EngineEvent::kSQDrained;
}

}  // namespace verbena
