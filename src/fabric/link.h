// A link of the simulated network: full duplex, each direction with the same rate and delay.
#pragma once

#include "base/transmission_time.h"

namespace verbena::fabric {

struct LinkConfig {
  Rate rate = gbps(100);
  Duration delay = us(1);   // propagation, one way
  double error_rate = 0.0;  // probability that a frame is lost
};

using Clock = TransmissionClock;  // of frames

}  // namespace verbena::fabric
