// How a device holds its QPs to the rates that congestion control gives them. After a packet of S
// bytes a QP's next may go S * 8 / rate later. Requests and READ responses are paced; what only
// acknowledges is not.
#pragma once

#include "base/transmission_time.h"
#include "wire/roce/overhead.h"

namespace verbena {

struct PacingConfig {
  // Which bytes of a packet count, besides `overhead`.
  enum class Counted : u8 {
    kPacket,   // BTH to ICRC
    kPayload,  // no header
  };
  Counted counted = Counted::kPacket;
  // This number is added to the bytes of each packet.
  u32 overhead_bytes = kWireOverheadBytes;
  TransmissionClock clock = TransmissionClock::kPicoseconds;  // of waits
  // A QP that goes late makes up for so much time, and waits half of it longer, so that packets go
  // in bursts. For drivers whose clock is coarse; 0: each packet at its time.
  Duration burst{};
  // Where the rate is at least this, there are no waits.
  Rate unpaced_from = Rate::unlimited();
};

}  // namespace verbena
