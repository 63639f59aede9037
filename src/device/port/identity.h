// The identity that a Verbena device reports. IBTA Vol 1, 11.2.1.2 (Query HCA).
#pragma once

#include "base/types.h"

namespace verbena {

inline constexpr char kFirmwareVersion[] = "0.2.0";  // Verbena's own
inline constexpr u32 kVendorId = 0x025642;  // an OUI of the locally administered kind: no vendor's
inline constexpr u32 kVendorPartId = 1;
inline constexpr u32 kHardwareVersion = 1;

}  // namespace verbena
