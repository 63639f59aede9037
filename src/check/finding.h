// Finding: one misuse of the verbs, and the calls that it consists of.
#pragma once

#include <string>
#include <vector>

#include "check/site.h"

namespace verbena::check {

enum class Kind {
  kSendBufferChanged,      // between the post and the completion
  kReceiveBufferTooSmall,  // for the message that came
  kNeverReceives,          // peers were told to wait for receives, and none was posted
  kRegionInUse,            // deregistered under work in flight
  kMemoryGone,             // unmapped under a region
  kUnknownKey,             // an L_Key that names no region
  kOtherDomain,            // an L_Key of another protection domain
  kInvalidatedKey,         // an R_Key that this side has had invalidated
  kUnreclaimable,          // a send queue full of unsignaled work
  kCQTooSmall,             // for the completions that may arrive
  kWrongState,             // work for a queue pair that accepts none now
  kSkippedState,           // a transition that does not exist
  kUnaligned,              // an atomic
  kOverlap,                // two operations write to the same memory
  kUnacknowledgedEvent,    // that a destroy call waits for
  kLeak,
};

[[nodiscard]] std::string_view title_of(Kind kind);

struct Finding {
  struct Call {
    std::string what;  // "posted here"
    Site site;
  };
  Kind kind;
  std::string details;      // one line; may be empty
  std::vector<Call> calls;  // the first is the place of the finding
};

}  // namespace verbena::check
