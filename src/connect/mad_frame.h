// MADFrame and MADOut: one MAD that arrived at or leaves by QP1, the General Services Interface.
// IBTA Vol 1, 13.5.1. The driver makes the UD packet around it: Q_Key 0x80010000, from QP 1 to QP
// 1.
#pragma once

#include <span>

#include "base/types.h"
#include "wire/ib/cm/message.h"
#include "wire/ib/gid.h"

namespace verbena {

struct MADFrame {
  GID source{}, destination{};
  QPN source_qp{};
  std::span<const u8> mad;  // as it arrived; not validated
};

struct MADOut {
  GID source{}, destination{};
  cm::MADBytes mad{};
};

}  // namespace verbena
