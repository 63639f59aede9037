// The paragraph that people read when a QP's work ends in error: QP and peer, the work, the
// packets, the most likely cause, and advice.
#pragma once

#include <string>

#include "explain/diagnosis.h"

namespace verbena::explain {

// The likely cause, and the remedy.
struct Advice {
  std::string cause, remedy;
};
[[nodiscard]] Advice advice_for(Cause cause, const Facts& facts);

[[nodiscard]] std::string paragraph(const Facts& facts);
// IBV_EVENT_CQ_ERR. `capacity`: the CQ's size in CQEs.
[[nodiscard]] std::string overrun_paragraph(u32 capacity, bool injected);

}  // namespace verbena::explain
