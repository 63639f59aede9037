// ECE: Enhanced Connection Establishment: vendor-specific options that both ends agree on. IBTA Vol
// 1, release 1.4, 12.6; places as in Linux's include/rdma/ibta_vol1_c12.h. REQ and REP carry the
// vendor in bytes that were reserved; the options are the MAD's Attribute Modifier.
#pragma once

#include "base/types.h"

namespace verbena::cm {

struct ECE {
  u32 vendor_id = 0;  // 24 bits, an OUI; 0: none
  u32 options = 0;    // as the vendor defines them
  friend bool operator==(const ECE&, const ECE&) = default;
};

}  // namespace verbena::cm
