// The packets of a GID: RoCEv1 has a GRH behind its own EtherType and stays on the Ethernet segment
// (Annex A16); RoCEv2 has IP and UDP (Annex A17). The names are Linux's.
#pragma once

#include "base/types.h"

namespace verbena {

enum class GIDType : u8 { kRoCEv1, kRoCEv2 };

}  // namespace verbena
