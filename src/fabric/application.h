// Application: a program on the hosts of a network, for cases in which flows known beforehand are
// not enough: it sends messages on connections of its own, and is told of them. Each call belongs
// to one host, and those of one host come in the order of simulated time. Hosts are simulated one
// after another within a window of time, or by several threads at once: in a call the application
// touches only data that belongs to that host, and uses the network for it. Information for another
// host goes to it as a message or a signal (Network::signal), and is visible there when that has
// arrived.
#pragma once

#include "base/time.h"
#include "base/types.h"

namespace verbena::fabric {

class Application {
 public:
  virtual ~Application() = default;
  // At the receiver: the whole message is in its memory, the completion of its immediate data.
  virtual void on_arrival(u32 connection, u32 word, Time now) = 0;
  // At the sender, which has the acknowledgement: one more may be under way.
  virtual void on_sent(u32 connection, Time now) = 0;
  // At the host that it was set for.
  virtual void on_alarm(u32 word, Time now) = 0;
};

}  // namespace verbena::fabric
