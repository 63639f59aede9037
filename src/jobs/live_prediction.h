// The predicted time of a live operation (libverbena-coll) on one host: the simulator runs the
// operation's own script.
//
// On one host the receiver of a message does the work: it copies or reduces from the sender's
// memory. So a rank's port carries nanoseconds of work instead of bytes, at one a nanosecond:
// NVLinkPorts serves the messages to a rank one after another, as the rank's thread does. The costs
// come from a measurement.
#pragma once

#include "base/time.h"
#include "coll/costs.h"
#include "coll/plan.h"

namespace verbena::jobs {

// Predicts the operation in place, except AllToAll, which cannot be in place.
[[nodiscard]] Duration predict(const coll::Call& call, u32 ranks, const coll::Choice& choice,
                               const coll::Costs& costs);

}  // namespace verbena::jobs
