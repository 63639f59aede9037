// The paragraph that people read when a QP's work ends in error: which QP and peer, which work,
// what the packets were, the most likely cause, what to try.
#pragma once

#include <string>

#include "explain/diagnosis.h"

namespace verbena::explain {

// What is likely, and what to do about it.
struct Advice {
  std::string cause, remedy;
};
[[nodiscard]] Advice advice_for(Cause cause, const Facts& facts);

[[nodiscard]] std::string paragraph(const Facts& facts);
// IBV_EVENT_CQ_ERR. `capacity`: of the CQ, in CQEs.
[[nodiscard]] std::string overrun_paragraph(u32 capacity, bool injected);

}  // namespace verbena::explain
