// How the processes of one host share the 24-bit QPN space: a process (more exactly, one adapter)
// has a slot, the upper 10 bits of all its QPNs, so that a packet's destination QPN tells its
// process. Slot 0 has the well-known QPNs 0 and 1, the last one the multicast QPN; neither is given
// out.
#pragma once

#include "base/types.h"

namespace verbena::host {

inline constexpr u32 kQPNIndexBits = 14;
inline constexpr u32 kFirstSlot = 1, kLastSlot = 1022;
inline constexpr u32 kQPNsPerSlot = (1u << kQPNIndexBits) - 1;  // index 0 is left out

constexpr QPN first_qpn_of(u32 slot) { return QPN{(slot << kQPNIndexBits) + 1}; }
constexpr u32 slot_of(u32 qpn) { return qpn >> kQPNIndexBits; }
constexpr bool is_process_slot(u32 slot) { return slot >= kFirstSlot && slot <= kLastSlot; }

}  // namespace verbena::host
