// The kinds of answers to a request of the Reliable Connection service. IBTA Vol 1, 9.7.5, Annex
// A19.
#pragma once

#include "base/check.h"
#include "transport/work_request.h"

namespace verbena {

enum class Answer : u8 {
  kAcknowledge,
  kData,          // READ responses
  kOriginal,      // an ATOMIC ACK
  kConfirmation,  // a READ response without payload. Annex A19
};

constexpr Answer answer_to(SendOp op) {
  switch (op) {
    case SendOp::kRDMARead: return Answer::kData;
    case SendOp::kCompareSwap:
    case SendOp::kFetchAdd: return Answer::kOriginal;
    case SendOp::kFlush:
    case SendOp::kAtomicWrite: return Answer::kConfirmation;
    case SendOp::kSend:
    case SendOp::kSendWithImmediate:
    case SendOp::kSendWithInvalidate:
    case SendOp::kRDMAWrite:
    case SendOp::kRDMAWriteWithImmediate:
    case SendOp::kBindMW:
    case SendOp::kLocalInvalidate: return Answer::kAcknowledge;
  }
  CHECK_UNREACHABLE();
}

constexpr bool expects_response(SendOp op) { return answer_to(op) != Answer::kAcknowledge; }

}  // namespace verbena
