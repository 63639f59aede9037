// How soon a packet must leave. A call to the kernel costs more than many packets, so a link may
// keep one a little, to send it with others.
#pragma once

#include "base/types.h"

namespace verbena {

enum class Urgency : u8 {
  kNow,
  kFirst,      // a request, and its QP waits for nothing: now, unless the program is posting on
  kWithMore,   // a request, and an earlier one's answer is still to come: with those that follow
  kWithReply,  // an acknowledgement: with what the program sends next, which may overtake it
};

}  // namespace verbena
