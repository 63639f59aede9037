// CMConfig: what a CMAgent is, and how much it may hold.
#pragma once

#include "base/time.h"
#include "base/types.h"
#include "connect/comm_id_space.h"
#include "wire/ib/cm/ids.h"

namespace verbena {

struct CMConfig {
  ProcessSlot process_slot{};
  GUID ca_guid{};
  u8 ca_ack_delay = 15;  // 5 bits; rxe's value: how late this device may acknowledge, at most
  // How long "nobody listens" is asked again before the program hears it. A server that goes on to
  // listen for its next connection may be slower than a peer in software is fast.
  Duration refusal_patience{};
  u64 seed = 0;                 // the live driver takes it from the kernel's random source
  u32 max_connections = 16384;  // connections and SIDR exchanges of all states
  u32 max_listeners = 1024;
};

}  // namespace verbena
