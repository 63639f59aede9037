// GIDType: the packet format of a GID. InfiniBand's own packets are forwarded by LIDs within a
// subnet. RoCEv1 has a GRH after its own EtherType and stays within the Ethernet segment (Annex
// A16). RoCEv2 has IP and UDP (Annex A17). The names are Linux's.
#pragma once

#include "base/types.h"

namespace verbena {

enum class GIDType : u8 { kRoCEv1, kRoCEv2, kInfiniBand };

}  // namespace verbena
