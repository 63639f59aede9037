// ECE: Enhanced Connection Establishment, what two ends of one vendor agree on beyond the standard.
// IBTA Vol 1, release 1.4, 12.6; places as in Linux's include/rdma/ibta_vol1_c12.h. REQ and REP
// have the vendor in what were reserved bytes; the options are the MAD's Attribute Modifier.
#pragma once

#include "base/types.h"

namespace verbena::cm {

struct ECE {
  u32 vendor_id = 0;  // 24 bits, an OUI; 0: none
  u32 options = 0;    // in the vendor's own words
  friend bool operator==(const ECE&, const ECE&) = default;
};

}  // namespace verbena::cm
