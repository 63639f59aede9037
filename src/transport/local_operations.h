// The send operations that never leave the device: Bind Memory Window and Local Invalidate. IBTA
// Vol 1, 10.6.7.2 (bind), 10.6.7.2.4 and 10.8.2.1 (invalidate), 11.4.1.1. A requester executes them
// in the order of its queue.
#pragma once

#include "transport/cqe.h"
#include "transport/qp_attributes.h"
#include "transport/send_queue.h"

namespace verbena {

constexpr bool is_local_operation(SendOp op) {
  return op == SendOp::kBindMW || op == SendOp::kLocalInvalidate;
}

// Returns kSuccess, or kMWBind: the "Memory Management Operation Error" of IBTA 11.6.2, for both.
// Precondition: is_local_operation(wqe.wr.op).
[[nodiscard]] WQEStatus execute_local_operation(const SendWQE& wqe, const QPAttributes& qp,
                                                ProtectionTable& memory);

}  // namespace verbena
