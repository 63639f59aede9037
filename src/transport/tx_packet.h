// TxPacket: one outgoing transport packet: headers as structs, payload in place in registered (or
// inline) memory. The device adds addresses; the link copies or gathers and adds the ICRC. The
// spans are valid until the next call into the device. Or a train of packets (train.h), for callers
// that accept one.
#pragma once

#include "memory/payload.h"
#include "transport/address_vector.h"
#include "transport/train.h"
#include "transport/urgency.h"
#include "wire/ib/packet.h"

namespace verbena {

struct TxPacket {
  PacketHeaders headers;  // bth.pad_count is set from the payload's size. Of a train: the first's
  PayloadList payload;    // of a train: one piece, of which each packet has an equal part
  u32 packets = 1;        // of a train: their number, with consecutive PSNs
  const AddressVector* destination = nullptr;  // UD; nullptr: the QP's own path
  Urgency urgency = Urgency::kNow;
};

}  // namespace verbena
