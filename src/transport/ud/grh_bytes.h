// Makes the 40 bytes before the payload in a UD receive buffer from the packet's headers. IBTA Vol
// 1, 9.8.3; A17.4.5.1: RoCEv2 over IPv6 leaves the IPv6 header there. Over IPv4 the first 20 bytes
// are undefined (0 here), and the last 20 hold the IPv4 header, with a valid checksum, by which
// verbs programs distinguish the two (ibv_init_ah_from_wc). RoCEv1 leaves its GRH there.
#pragma once

#include <array>

#include "transport/datagram_engine.h"
#include "wire/ib/grh.h"

namespace verbena {

[[nodiscard]] std::array<u8, GRH::kSize> grh_bytes(const RxContext& context);

}  // namespace verbena
