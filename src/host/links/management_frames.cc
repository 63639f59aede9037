#include "host/links/management_frames.h"

#include "base/check.h"

namespace verbena::host {

bool is_management_for_us(MADRouter& router, const IngressFrame& frame, Time now,
                          LinkCounters& counters) {
  switch (router.route(frame, now)) {
    case MADRouter::Outcome::kOurs: return true;
    case MADRouter::Outcome::kKept: return false;
    case MADRouter::Outcome::kHandedOn: ++counters.handed_on; return false;
    case MADRouter::Outcome::kDropped: ++counters.receive_dropped; return false;
  }
  CHECK_UNREACHABLE();
}

}  // namespace verbena::host
