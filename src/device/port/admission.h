// Whether a packet may reach the QP it names, by the rules that reception.h names.
#pragma once

#include "device/port/frame.h"
#include "device/port/reception.h"
#include "device/qp/queue_pair.h"

namespace verbena {

// `qp`: what the packet's DestQP names, or nullptr.
[[nodiscard]] Reception admit(const QueuePair* qp, const PacketView& packet,
                              const IngressFrame& frame);
// From the peer of a connected QP, and to the address it knows us by.
[[nodiscard]] bool is_from_peer(const QueuePair& qp, const IngressFrame& frame);

}  // namespace verbena
