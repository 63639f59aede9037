// Whether a packet may reach the QP it names. IBTA Vol 1, 9.6.1 (validation of transport headers:
// 9.6.1.1 QP, service and state, 9.6.1.2 P_Key, 9.6.1.5 source), 10.3.1 (what each state takes).
#pragma once

#include "device/frame.h"
#include "device/queue_pair.h"

namespace verbena {

enum class Admission : u8 {
  kAdmitted,
  kUnknownQP,
  kService,  // not the transport of this type of QP
  kState,    // Reset, Init and Error take nothing; RTR takes no responses
  kPKey,
  kSource,  // a connected QP hears its peer only
};

// `qp`: what the packet's DestQP names; nullptr: nothing.
[[nodiscard]] Admission admit(const QueuePair* qp, const PacketView& packet,
                              const IngressFrame& frame);
// From the peer of a connected QP, and to the address it knows us by.
[[nodiscard]] bool is_from_peer(const QueuePair& qp, const IngressFrame& frame);

}  // namespace verbena
