// What the packets of a GID are: InfiniBand's own, which go by LIDs within a subnet; RoCEv1 has a
// GRH behind its own EtherType and goes no further than the Ethernet segment (Annex A16); RoCEv2
// has IP and UDP (Annex A17). The names are Linux's.
#pragma once

#include "base/types.h"

namespace verbena {

enum class GIDType : u8 { kRoCEv1, kRoCEv2, kInfiniBand };

}  // namespace verbena
