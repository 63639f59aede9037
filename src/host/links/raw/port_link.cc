#include "host/links/raw/port_link.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "host/os/clock.h"

namespace verbena::host {

void PortLink::use(std::unique_ptr<RawPort> port) {
  port_ = std::move(port);
  std::ranges::copy(port_->descriptors(), std::back_inserter(descriptors_));
  std::ranges::copy(below_->descriptors(), std::back_inserter(descriptors_));
}

const Neighbours::Route& PortLink::route_of(const EgressFrame& frame) {
  if (!std::exchange(is_in_burst_, true)) burst_begun_ = monotonic_now();
  return neighbours_.towards(frame.destination, burst_begun_);
}

void PortLink::leave() {
  if (std::exchange(has_left_, true)) return;
  below_->leave();
  if (port_ != nullptr) port_->close();
}

void PortLink::abandon() {
  has_left_ = true;
  port_->close();
  below_->abandon();
}

const LinkCounters& PortLink::counters() const {
  counters_ = with_raw(below_->counters(), own_);
  return counters_;
}

}  // namespace verbena::host
