// PFC headroom of one port and priority, for any rate and length of cable: the data that a switch
// must still be able to store after it has decided to pause a neighbour. IEEE 802.1Q-2022, annex N:
// the headroom is the sum of the data that delays the pause and the data that the neighbour sends
// until it obeys.
//
//   frame      of another priority, which the switch has begun to send before the pause
//   pause      the PFC frame itself
//   cable      there and back, 5 ns/m (a speed of light of 0.66 c, as in SONiC's dynamic buffer
//              model)
//   PHY        of the switch's interface: IEEE 802.3, 44.3 (10G), 80.4 (40G, 100G), 105.5 (25G)
//   response   until the neighbour stops: IEEE 802.3, 31B.3.7, in pause quanta of 512 bits
//   last       frame of this priority, which the neighbour has begun by then
// A rate whose delays are not in the table has, in time, those of the next slower rate in it.
#pragma once

#include "base/rate.h"

namespace verbena::jobs {

struct HeadroomRequest {
  Rate rate;
  u32 cable_metres = 30;
  u32 longest_frame = 9216;                // bytes, of any priority; with its FCS
  u32 longest_lossless_frame = 4096 + 66;  // of the priority: RoCEv2 with a path MTU of 4096
};

// All in bytes, of which the headroom is the sum.
struct Headroom {
  u64 frame = 0, pause = 0, cable = 0, phy = 0, response = 0, last = 0;

  [[nodiscard]] u64 sum() const { return frame + pause + cable + phy + response + last; }
};

[[nodiscard]] Headroom pfc_headroom(const HeadroomRequest& request);

}  // namespace verbena::jobs
