// HostPort: one port of a host's NIC: what waits there, and its pauses. A NIC with several is one
// bonded device, as with two ToR switches (Qian et al., Alibaba HPN, SIGCOMM 2024, 4): one address,
// and each flow takes the port that a hash of its addresses and UDP ports gives it. Where that port
// is down, or no way leads from it to the peer, a hash chooses among the others.
// A packet that the device gives for a port which is busy waits here, and its QP with it, so that
// the other ports get theirs. At most one packet of each QP waits so.
#pragma once

#include "fabric/egress_queues.h"
#include "fabric/pfc.h"
#include "fabric/port.h"

namespace verbena::fabric {

struct HostPort {
  Port* port = nullptr;
  u32 place = 0;  // of the port among all
  u64 sent_bytes = 0;
  Time wake = Time::never();      // set already
  Time wake_set_at;               // when that was
  EgressQueues acknowledgements;  // and what is asked of the switch
  EgressQueues parked;            // data
  u8 paused = 0;                  // by the switch, a bit for each priority
  u8 asking = 0;                  // the switch to pause them, likewise
  u8 stuck = 0;                   // of those: whatever the receiver says
  std::array<Time, kPriorities> paused_until{};
  std::array<Time, kPriorities> ask_again{};

  void pause(u32 priority) {
    paused |= static_cast<u8>(1u << priority);
    acknowledgements.pause(priority);
    parked.pause(priority);
  }
  void resume(u32 priority) {
    paused &= static_cast<u8>(~(1u << priority));
    acknowledgements.resume(priority);
    parked.resume(priority);
  }
};

}  // namespace verbena::fabric
