// ECN: the low two bits of IPv4's TOS and IPv6's traffic class; the six above are the DSCP.
// RFC 3168, 5; RFC 2474, 3.
#pragma once

#include "base/types.h"

namespace verbena {

inline constexpr u8 kMaxDSCP = 63;  // 6 bits

enum class ECN : u8 {
  kNotECT = 0,  // switches drop, never mark
  kECT1 = 1,
  kECT0 = 2,  // RoCEv2 senders use it
  kCE = 3,    // congestion experienced: a switch marked it
};

constexpr ECN ecn_of(u8 traffic_class) { return static_cast<ECN>(traffic_class & 3); }
constexpr u8 dscp_of(u8 traffic_class) { return static_cast<u8>(traffic_class >> 2); }
// Only the low 6 bits of `dscp` count.
constexpr u8 traffic_class_of(u8 dscp, ECN ecn) {
  return static_cast<u8>((dscp << 2) | static_cast<u8>(ecn));
}

}  // namespace verbena
