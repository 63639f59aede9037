// The operations in the BTHs of one message, by the packet's place in it: SEND and RDMA WRITE on
// the wire, in every connected service. IBTA Vol 1, 9.2.1, table 38.
#pragma once

#include "base/check.h"
#include "transport/work_request.h"
#include "wire/ib/opcode.h"

namespace verbena {

struct MessageOps {
  Op first, middle, last, only;
};

// Precondition: `op` is a SEND or an RDMA WRITE.
constexpr MessageOps message_ops(SendOp op) {
  switch (op) {
    case SendOp::kSend: return {Op::kSendFirst, Op::kSendMiddle, Op::kSendLast, Op::kSendOnly};
    case SendOp::kSendWithImmediate:
      return {Op::kSendFirst, Op::kSendMiddle, Op::kSendLastWithImmediate,
              Op::kSendOnlyWithImmediate};
    case SendOp::kSendWithInvalidate:
      return {Op::kSendFirst, Op::kSendMiddle, Op::kSendLastWithInvalidate,
              Op::kSendOnlyWithInvalidate};
    case SendOp::kRDMAWrite:
      return {Op::kRDMAWriteFirst, Op::kRDMAWriteMiddle, Op::kRDMAWriteLast, Op::kRDMAWriteOnly};
    case SendOp::kRDMAWriteWithImmediate:
      return {Op::kRDMAWriteFirst, Op::kRDMAWriteMiddle, Op::kRDMAWriteLastWithImmediate,
              Op::kRDMAWriteOnlyWithImmediate};
    case SendOp::kRDMARead:
    case SendOp::kCompareSwap:
    case SendOp::kFetchAdd:
    case SendOp::kFlush:
    case SendOp::kAtomicWrite:
    case SendOp::kBindMW:
    case SendOp::kLocalInvalidate: break;
  }
  CHECK_UNREACHABLE();
}

}  // namespace verbena
