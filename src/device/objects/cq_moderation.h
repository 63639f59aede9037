// CQModeration: how many completions one completion event may stand for. ibv_modify_cq(3).
#pragma once

#include "base/time.h"

namespace verbena {

// The event is due with the `count`-th completion since the request, or `period` after the first,
// whichever comes first. A count of 0 or 1, or a period of 0, is no moderation: due at once.
struct CQModeration {
  u16 count = 0;
  Duration period{};
  bool is_on() const { return count > 1 && period > Duration{}; }
};

// OnOverrun: the effect of a completion that finds no room in its CQ.
enum class OnOverrun : u8 {
  kFail,             // the CQ fails, and the QPs with it. IBTA 11.6.3.2
  kOverwriteOldest,  // the application has promised that it does not happen
};

}  // namespace verbena
