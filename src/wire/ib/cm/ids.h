// Identifiers that communication management carries. IBTA Vol 1, 12.7.
#pragma once

#include "base/types.h"

namespace verbena {

using CommId = Id<struct CommIdTag, u32>;        // Communication ID, or SIDR Request ID. 12.7.1
using ServiceId = Id<struct ServiceIdTag, u64>;  // by which a request names its listener. 12.7.3
using GUID = Id<struct GUIDTag, u64>;            // EUI-64 of a CA. 4.1.1

}  // namespace verbena
