// CMConfig: the properties and limits of a CMAgent.
#pragma once

#include "base/time.h"
#include "base/types.h"
#include "connect/comm_id_space.h"
#include "wire/ib/cm/ids.h"

namespace verbena {

struct CMConfig {
  ProcessSlot process_slot{};
  GUID ca_guid{};
  u8 ca_ack_delay = 15;  // 5 bits; rxe's value: the longest delay of this device's acknowledgements
  // The time for which a refusal "nobody listens" is retried before the program learns of it. A
  // server that continues to listen for its next connection may be slower than a software peer.
  Duration refusal_patience{};
  u64 seed = 0;                 // the live driver takes it from the kernel's random source
  u32 max_connections = 16384;  // connections and SIDR exchanges of all states
  u32 max_listeners = 1024;
};

}  // namespace verbena
