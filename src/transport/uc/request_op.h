// The operation in the BTH of a UC request: from the work request and the packet's place in its
// message. IBTA Vol 1, 9.2.1, table 38; 9.8.2.1.
#pragma once

#include "base/check.h"
#include "transport/work_request.h"
#include "wire/ib/opcode.h"

namespace verbena {

struct RequestOps {  // of one SendOp, by place
  Op first, middle, last, only;
};

// The operations of UC: SEND and RDMA WRITE, with and without immediate. Others are refused when
// they are posted.
constexpr bool is_uc_request(SendOp op) {
  return op == SendOp::kSend || op == SendOp::kSendWithImmediate || op == SendOp::kRDMAWrite ||
         op == SendOp::kRDMAWriteWithImmediate;
}

constexpr RequestOps uc_request_ops(SendOp op) {
  switch (op) {
    case SendOp::kSend: return {Op::kSendFirst, Op::kSendMiddle, Op::kSendLast, Op::kSendOnly};
    case SendOp::kSendWithImmediate:
      return {Op::kSendFirst, Op::kSendMiddle, Op::kSendLastWithImmediate,
              Op::kSendOnlyWithImmediate};
    case SendOp::kRDMAWrite:
      return {Op::kRDMAWriteFirst, Op::kRDMAWriteMiddle, Op::kRDMAWriteLast, Op::kRDMAWriteOnly};
    case SendOp::kRDMAWriteWithImmediate:
      return {Op::kRDMAWriteFirst, Op::kRDMAWriteMiddle, Op::kRDMAWriteLastWithImmediate,
              Op::kRDMAWriteOnlyWithImmediate};
    case SendOp::kSendWithInvalidate:
    case SendOp::kRDMARead:
    case SendOp::kCompareSwap:
    case SendOp::kFetchAdd:
    case SendOp::kBindMW:
    case SendOp::kLocalInvalidate: break;
  }
  CHECK_UNREACHABLE();
}

}  // namespace verbena
