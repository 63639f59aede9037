// Makes the CQEs of work queue elements. IBTA Vol 1, 10.8.1.1 (signaled and unsignaled
// completions), 11.4.2.1 (contents of a CQE). The same for every service.
#pragma once

#include "base/check.h"
#include "transport/cqe.h"
#include "transport/qp_attributes.h"
#include "transport/send_queue.h"

namespace verbena {

constexpr CompletionOp completion_op(SendOp op) {
  switch (op) {
    case SendOp::kSend:
    case SendOp::kSendWithImmediate:
    case SendOp::kSendWithInvalidate: return CompletionOp::kSend;
    case SendOp::kRDMAWrite:
    case SendOp::kRDMAWriteWithImmediate: return CompletionOp::kRDMAWrite;
    case SendOp::kRDMARead: return CompletionOp::kRDMARead;
    case SendOp::kCompareSwap: return CompletionOp::kCompareSwap;
    case SendOp::kFetchAdd: return CompletionOp::kFetchAdd;
    case SendOp::kFlush: return CompletionOp::kFlush;
    case SendOp::kAtomicWrite: return CompletionOp::kAtomicWrite;
    case SendOp::kBindMW: return CompletionOp::kBindMW;
    case SendOp::kLocalInvalidate: return CompletionOp::kLocalInvalidate;
  }
  CHECK_UNREACHABLE();
}

// Returns whether the WQE makes a CQE at all: an error or a flush always does.
inline bool completes_visibly(const SendWQE& wqe, const QPAttributes& qp, WQEStatus status) {
  return wqe.wr.signaled || qp.signal_all || status != WQEStatus::kSuccess;
}

// Returns true for operations whose answer goes to local memory. Their CQEs count its bytes.
constexpr bool returns_data(SendOp op) {
  return op == SendOp::kRDMARead || op == SendOp::kCompareSwap || op == SendOp::kFetchAdd;
}

inline CQE send_cqe(const SendWQE& wqe, const QPAttributes& qp, WQEStatus status) {
  const bool good = status == WQEStatus::kSuccess;
  return {.wr_id = wqe.wr.wr_id,
          .status = status,
          .op = completion_op(wqe.wr.op),
          .solicited = !good,  // an error wakes a solicited-only waiter. IBTA 11.4.2.2
          .byte_length = good && returns_data(wqe.wr.op) ? wqe.length_bytes : 0,
          .qp = qp.qpn,
          .source_qp = {}};
}

inline void count_completion(const SendWQE& wqe, const QPAttributes& qp, WQEStatus status) {
  if (const std::optional<CountedOp> op = counted_as(wqe.wr.op))
    qp.counters.on_completion(*op, status == WQEStatus::kSuccess, wqe.length_bytes);
}

// The CQE of a receive that ends without a message: flushed, or in error. Responders fill in a
// successful one.
inline CQE receive_cqe(u64 wr_id, const QPAttributes& qp, WQEStatus status) {
  return {.wr_id = wr_id,
          .status = status,
          .op = CompletionOp::kReceive,
          .solicited = status != WQEStatus::kSuccess,
          .p_key_index = qp.p_key_index,
          .qp = qp.qpn,
          .source_qp = {}};
}

}  // namespace verbena
