// ObjectFault: what a fault rule does to an object of the device rather than to a packet.
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
