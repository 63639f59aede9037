// MADFrame and MADOut: one MAD that came in or is to go out by QP1, the General Services Interface.
// IBTA Vol 1, 13.5.1. The driver finds the UD packet around it: Q_Key 0x80010000, from QP 1 to
// QP 1.
#pragma once

#include <span>

#include "base/types.h"
#include "wire/ib/cm/message.h"
#include "wire/ib/gid.h"

namespace verbena {

struct MADFrame {
  GID source{}, destination{};
  QPN source_qp{};
  std::span<const u8> mad;  // as long as it came; not yet looked at
};

struct MADOut {
  GID source{}, destination{};
  cm::MADBytes mad{};
};

}  // namespace verbena
