#include "check/finding.h"

#include "base/check.h"

namespace verbena::check {

std::string_view title_of(Kind kind) {
  switch (kind) {
    case Kind::kSendBufferChanged: return "a buffer changed while it was being sent";
    case Kind::kReceiveBufferTooSmall: return "a receive is too small for the message that came";
    case Kind::kNeverReceives: return "messages came to a queue pair that never had a receive";
    case Kind::kRegionInUse: return "a memory region was deregistered while work was using it";
    case Kind::kMemoryGone: return "memory was unmapped while it was registered";
    case Kind::kUnknownKey: return "an L_Key names no memory region";
    case Kind::kOtherDomain: return "a memory region of another protection domain";
    case Kind::kInvalidatedKey: return "an R_Key was used after it was invalidated";
    case Kind::kUnreclaimable: return "a send queue is full of unsignaled work";
    case Kind::kCQTooSmall: return "a completion queue is too small for the work in flight";
    case Kind::kWrongState: return "work was posted in a state that takes none";
    case Kind::kSkippedState: return "ibv_modify_qp skips a state";
    case Kind::kUnaligned: return "an atomic operation is not on 8 aligned bytes";
    case Kind::kOverlap: return "two operations in flight write to the same memory";
    case Kind::kUnacknowledgedEvent: return "an object was destroyed before its events were acked";
    case Kind::kLeak: return "an object was never destroyed";
  }
  CHECK_UNREACHABLE();
}

}  // namespace verbena::check
