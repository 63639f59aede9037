// WaiterSleep: how a thread that waits for an event sleeps while it receives for all: in poll(2) on
// the link's descriptors and on that of its event. Not thread-safe: one thread at a time.
#pragma once

#include <poll.h>

#include <span>
#include <vector>

namespace verbena::host {

enum class Woken { kByLink, kByEvent, kBySignal };

class WaiterSleep {
 public:
  explicit WaiterSleep(std::span<const int> link);

  // Returns when a descriptor is readable, or after a signal that would end read(2). `event`: a
  // descriptor that is readable once the event is there. kByEvent also where poll(2) fails: then
  // the thread sleeps until its event. A cancellation point.
  [[nodiscard]] Woken sleep(int event);

 private:
  std::vector<pollfd> descriptors_;  // the first is the event's
};

}  // namespace verbena::host
