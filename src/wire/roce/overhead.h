// The bytes that a RoCEv2 packet takes on an Ethernet link besides BTH .. ICRC: Ethernet header 14
// and check 4, preamble 8, gap 12; IPv4 20, UDP 8. IEEE 802.3, 3.1.1 and 4.4.2.
#pragma once

#include "base/types.h"

namespace verbena {

inline constexpr u32 kWireOverheadBytes = 66;

}  // namespace verbena
