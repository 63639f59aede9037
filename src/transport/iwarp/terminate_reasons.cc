#include "transport/iwarp/terminate_reasons.h"

#include "base/check.h"

namespace verbena::iwarp {

TerminateReason reason_of_write(MemoryFault fault) {
  switch (fault) {
    case MemoryFault::kNone:
    case MemoryFault::kLater: break;
    case MemoryFault::kBadKey: return reason::kTaggedInvalidSTag;
    case MemoryFault::kBounds: return reason::kTaggedBounds;
    case MemoryFault::kAccess: return reason::kAccessRights;
    case MemoryFault::kGone:
    case MemoryFault::kProtected: return reason::kStreamCatastrophic;
  }
  CHECK_UNREACHABLE();
}

TerminateReason reason_of_read(MemoryFault fault) {
  switch (fault) {
    case MemoryFault::kNone:
    case MemoryFault::kLater: break;
    case MemoryFault::kBadKey: return reason::kInvalidSTag;
    case MemoryFault::kBounds: return reason::kBounds;
    case MemoryFault::kAccess: return reason::kAccessRights;
    case MemoryFault::kGone:
    case MemoryFault::kProtected: return reason::kStreamCatastrophic;
  }
  CHECK_UNREACHABLE();
}

}  // namespace verbena::iwarp
