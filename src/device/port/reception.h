// Reception: the result for a received frame. IBTA Vol 1, 9.6.1 (validation of transport headers:
// 9.6.1.1 QP, service and state, 9.6.1.2 P_Key, 9.6.1.5 source), 10.3.1 (what each state takes).
#pragma once

#include "base/types.h"

namespace verbena {

enum class Reception : u8 {
  kAccepted,   // has reached its QP, or is management
  kMalformed,  // size, addresses or headers
  kBadICRC,
  kUnknownQP,
  kService,  // not the transport of this type of QP
  kState,    // Reset, Init and Error take nothing; RTR takes no responses
  kPKey,
  kSource,  // a connected QP hears its peer only
};

}  // namespace verbena
