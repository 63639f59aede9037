// PeerLimits: the requests that the peer has room for: messages that consume a receive, by its
// end-to-end credits (IBTA Vol 1, 9.7.7.2), and READs, atomics and their like, by its responder
// resources (9.7.3.1: the initiator depth).
#pragma once

#include <optional>

#include "base/check.h"
#include "transport/qp_attributes.h"
#include "transport/rc/answer.h"
#include "wire/ib/aeth.h"
#include "wire/ib/credits.h"

namespace verbena {

// Returns true for operations that consume a receive WQE of the peer. IBTA 9.7.7.2.5
constexpr bool needs_receive(SendOp op) {
  switch (op) {
    case SendOp::kSend:
    case SendOp::kSendWithImmediate:
    case SendOp::kSendWithInvalidate:
    case SendOp::kRDMAWriteWithImmediate: return true;
    case SendOp::kRDMAWrite:
    case SendOp::kRDMARead:
    case SendOp::kCompareSwap:
    case SendOp::kFetchAdd:
    case SendOp::kFlush:
    case SendOp::kAtomicWrite:
    case SendOp::kBindMW:
    case SendOp::kLocalInvalidate: return false;
  }
  CHECK_UNREACHABLE();
}

class PeerLimits {
 public:
  explicit PeerLimits(const QPAttributes& qp) : qp_(qp) {}

  void reset() {
    next_ssn_ = MSN(1);
    unanswered_ = 0;
    credit_limit_.reset();
  }

  // --- messages
  [[nodiscard]] bool has_credit(SendOp op) const {
    return !credit_limit_ || !needs_receive(op) || next_ssn_.before_or_equal(*credit_limit_);
  }
  void on_message() { next_ssn_ = next_ssn_.next(); }  // it starts
  // Notes the peer's limit sequence number. IBTA 9.7.7.2.4
  void note_credits(const AETH& aeth) {
    if (aeth.kind != AETHKind::kACK) return;
    if (aeth.value == kNoCredits)
      credit_limit_.reset();
    else
      credit_limit_ = aeth.msn.advanced(credits_from_code(aeth.value));
  }

  // --- READ pieces, atomics, FLUSHes and ATOMIC WRITEs
  [[nodiscard]] bool may_ask(SendOp op) const {
    return !expects_response(op) || unanswered_ < qp_.max_rd_atomic;
  }
  // The QP was set up without them.
  [[nodiscard]] bool never_asks(SendOp op) const {
    return expects_response(op) && qp_.max_rd_atomic == 0;
  }
  // A request leaves for the first time. To the responder each piece of a READ is a message.
  void on_request(SendOp op) {
    ++unanswered_;
    if (op == SendOp::kRDMARead) on_message();
  }
  void on_answered() {
    CHECK(unanswered_ != 0);
    --unanswered_;
  }
  [[nodiscard]] bool owes_answers() const { return unanswered_ != 0; }

 private:
  const QPAttributes& qp_;
  MSN next_ssn_{1};                  // of the next message to start. IBTA 9.7.7.2.1
  std::optional<MSN> credit_limit_;  // LSN; nullopt: the peer has no end-to-end flow control
  u32 unanswered_ = 0;
};

}  // namespace verbena
