// ObjectFault: the effect of a fault rule on an object of the device rather than on a packet.
#pragma once

#include "base/types.h"

namespace verbena::host {

struct ObjectFault {
  enum class Kind : u8 { kBreakQP, kOverrunCQ };
  Kind kind = Kind::kBreakQP;
  QPN qp{};
  friend bool operator==(const ObjectFault&, const ObjectFault&) = default;
};

}  // namespace verbena::host
