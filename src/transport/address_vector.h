// AddressVector: the destination of a QP's packets, or of a UD send. IBTA Vol 1, 11.2.2.1; RoCE
// needs a GRH.
#pragma once

#include "wire/ib/gid.h"

namespace verbena {

struct AddressVector {
  GID source, destination;
  u8 source_gid_index = 0;
  u8 traffic_class = 0;  // DSCP (6 bits) and ECN (2 bits): IPv4 TOS / IPv6 traffic class
  u8 hop_limit = 64;
  u32 flow_label = 0;  // 20 bits; chooses the UDP source port when not 0
  u8 service_level = 0;
  u8 static_rate = 0;
  friend bool operator==(const AddressVector&, const AddressVector&) = default;
};

}  // namespace verbena
