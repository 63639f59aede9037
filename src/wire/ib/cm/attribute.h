// The AttributeID of a MAD of class 7: the type of its CM message. IBTA Vol 1, 16.7.2.
#pragma once

#include "base/types.h"

namespace verbena::cm {

inline constexpr u8 kClassVersion = 2;

enum class Attribute : u16 {
  kREQ = 0x0010,
  kMRA = 0x0011,
  kREJ = 0x0012,
  kREP = 0x0013,
  kRTU = 0x0014,
  kDREQ = 0x0015,
  kDREP = 0x0016,
  kSIDRREQ = 0x0017,
  kSIDRREP = 0x0018,
  kLAP = 0x0019,
  kAPR = 0x001a,
};

}  // namespace verbena::cm
