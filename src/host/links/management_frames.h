// Frames to QP 1, which all processes of a host share: a link that has received one asks whether it
// is this process's.
#pragma once

#include "host/cm/mad_router.h"
#include "host/links/link.h"

namespace verbena::host {

// Returns false if the frame was forwarded, kept for later or dropped, and counted as such.
[[nodiscard]] bool is_management_for_us(MADRouter& router, const IngressFrame& frame, Time now,
                                        LinkCounters& counters);

}  // namespace verbena::host
