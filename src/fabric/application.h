// Application: what runs on the hosts of a network while it lives, where flows known beforehand are
// not enough: it sends messages on connections of its own and hears of them. Calls come in the
// order of simulated time, and from them it may use the network again.
#pragma once

#include "base/time.h"
#include "base/types.h"

namespace verbena::fabric {

class Application {
 public:
  virtual ~Application() = default;
  // The whole message is in the receiver's memory: the completion of its immediate data.
  virtual void on_arrival(u32 connection, u32 word, Time now) = 0;
  // Its sender has the acknowledgement: one more may be under way.
  virtual void on_sent(u32 connection, Time now) = 0;
  virtual void on_alarm(u32 word, Time now) = 0;
};

}  // namespace verbena::fabric
