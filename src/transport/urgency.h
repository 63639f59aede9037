// How soon a packet must leave. A call to the kernel costs more than many packets, so a link may
// hold a packet for a moment to send it with others.
#pragma once

#include "base/types.h"

namespace verbena {

enum class Urgency : u8 {
  kNow,
  kFirst,      // a request whose QP waits for nothing: now, unless the program continues to post
  kWithMore,   // a request behind one that is not answered yet: with those that follow
  kWithReply,  // an acknowledgement: with the program's next request, which may overtake it
};

}  // namespace verbena
