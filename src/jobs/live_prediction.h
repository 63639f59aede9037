// How long a live operation (libverbena-coll) will take on one host: its own script, done by the
// simulator.
//
// On one host the receiver of a message does the work: it copies or reduces from the sender's
// memory. So a rank's port carries nanoseconds of work instead of octets, at one a nanosecond:
// NVLinkPorts does what comes to a rank one after another, as the rank's thread does. Costs come
// from a measurement.
#pragma once

#include "base/time.h"
#include "coll/costs.h"
#include "coll/plan.h"

namespace verbena::jobs {

// In place, but for an AllToAll, which cannot be.
[[nodiscard]] Duration predict(const coll::Call& call, u32 ranks, const coll::Choice& choice,
                               const coll::Costs& costs);

}  // namespace verbena::jobs
