// Completer: the completions, errors and events of one requester's WQEs. IBTA Vol 1, 9.9.2
// (requester errors), 10.8.3 (completions), 10.3.1.5 (SQD). Its calls take the SendWindow, which
// says how far the queue is done.
#pragma once

#include <optional>

#include "transport/engine.h"
#include "transport/rc/send_window.h"

namespace verbena {

class Completer {
 public:
  // `fault`: receives the error that ends the QP.
  Completer(const EngineParts& parts, EngineCounters& counters, RequesterFault& fault)
      : qp_(parts.attributes), memory_(parts.memory), counters_(counters), fault_(fault) {}

  void reset();
  void on_error_state(Time now) { entered_error_ = now; }
  void on_drain() { drain_reported_ = false; }
  // The peer has done something that was asked of it.
  void note_answer() { answered_ = true; }

  // The WQE `index` failed on our own side. Nothing after it is sent; it completes in its turn.
  void stop_at(u64 index, WQEStatus status) {
    stopped_at_ = index;
    stopped_status_ = status;
  }
  [[nodiscard]] std::optional<u64> stopped_at() const { return stopped_at_; }
  [[nodiscard]] WQEStatus stopped_status() const { return stopped_status_; }
  [[nodiscard]] bool is_stopped(u64 index) const { return stopped_at_ && index >= *stopped_at_; }

  // Ends the QP with `status` of the oldest WQE that is not done. IBTA 10.8.3.2
  void fail(SendWindow& window, WQEStatus status);
  // The QP ends because of a WQE that is done already.
  void fail_later() { fatal_pending_ = true; }
  [[nodiscard]] bool has_failed() const { return failed_.has_value(); }

  // `done`: the first WQE that is not reported as done, at most window.done().
  [[nodiscard]] bool poll_cqe(SendWindow& window, u64 done, CQE& out);
  [[nodiscard]] bool may_complete(const SendWindow& window) const {
    const SendQueue& queue = window.queue();
    return queue.begin_index() < window.done() || failed_ ||
           (qp_.state == QPState::kError && !queue.empty());
  }
  // `is_drained`: nothing that has started is left to be done.
  [[nodiscard]] std::optional<EngineEvent> poll_event(bool is_drained);
  [[nodiscard]] bool may_raise() const { return fatal_pending_ || is_draining(); }
  [[nodiscard]] bool is_draining() const { return qp_.state == QPState::kSQD && !drain_reported_; }

 private:
  void note_fault(const SendWindow& window, const SendWQE& wqe, WQEStatus status);

  const QPAttributes& qp_;
  const ProtectionTable& memory_;
  EngineCounters& counters_;
  RequesterFault& fault_;

  std::optional<u64> stopped_at_;
  WQEStatus stopped_status_ = WQEStatus::kSuccess;
  std::optional<u64> failed_;  // the WQE that ended the QP
  WQEStatus failed_status_ = WQEStatus::kSuccess;
  bool fatal_pending_ = false, drain_reported_ = false;
  bool answered_ = false;
  Time entered_error_;
};

}  // namespace verbena
