// The operations of UC. IBTA Vol 1, 9.8.2.1.
#pragma once

#include "transport/work_request.h"

namespace verbena {

// Returns true for SEND and RDMA WRITE, with and without immediate. Others are refused when they
// are posted.
constexpr bool is_uc_request(SendOp op) {
  return op == SendOp::kSend || op == SendOp::kSendWithImmediate || op == SendOp::kRDMAWrite ||
         op == SendOp::kRDMAWriteWithImmediate;
}

}  // namespace verbena
