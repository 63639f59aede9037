#include "host/cm/mad_router.h"

#include <algorithm>
#include <cerrno>

#include "connect/comm_id_space.h"
#include "host/qpn_slot.h"

namespace verbena::host {

MADRouter::Outcome MADRouter::route(const IngressFrame& frame, Time now) {
  if (frame.transport.size() != kPacketSize) return Outcome::kOurs;  // for the device to count
  const auto route = route_of(frame.transport.subspan<kMADAt, kMADSize>());
  if (!route) return Outcome::kOurs;
  switch (route->by) {
    case RouteBy::kServiceId: return to_listener(route->service_id, frame, now);
    case RouteBy::kCommId: return to_slot(process_slot_of(route->comm_id).value, frame);
    case RouteBy::kEveryProcess: to_others_at_destination(frame); return Outcome::kOurs;
  }
  CHECK_UNREACHABLE();
}

MADRouter::Outcome MADRouter::to_listener(ServiceId service, const IngressFrame& frame, Time now) {
  const std::optional<u32> slot = read_ports().listener(service, frame.destination);
  return slot ? to_slot(*slot, frame) : keep(service, frame, now);
}

MADRouter::Outcome MADRouter::keep(ServiceId service, const IngressFrame& frame, Time now) {
  if (kept_.size() >= kMaxKept) return Outcome::kOurs;
  if (kept_.empty()) next_look_ = now + kLookInterval;
  Kept& kept = kept_.emplace_back(
      Kept{.frame = frame, .transport = {}, .service = service, .until = now + kGrace});
  std::ranges::copy(frame.transport, kept.transport.begin());
  return Outcome::kKept;
}

bool MADRouter::poll_kept(IngressFrame& out, Time now) {
  if (now < next_timer()) return false;
  const PortTable ports = read_ports();
  for (auto it = kept_.begin(); it != kept_.end();) {
    const std::optional<u32> slot = ports.listener(it->service, it->frame.destination);
    if (!slot && now < it->until) {
      ++it;
      continue;
    }
    polled_ = *it;
    it = kept_.erase(it);
    out = polled_.frame;
    out.transport = polled_.transport;
    if (!slot || to_slot(*slot, out) == Outcome::kOurs) return true;
  }
  next_look_ = now + kLookInterval;
  return false;
}

// kOurs as well where the process is gone.
MADRouter::Outcome MADRouter::to_slot(u32 slot, const IngressFrame& frame) {
  if (slot == channel_.slot() || !is_process_slot(slot)) return Outcome::kOurs;
  if (channel_.send(slot, frame)) return Outcome::kHandedOn;
  return errno == ECONNREFUSED ? Outcome::kOurs : Outcome::kDropped;
}

// Whoever has a connection has a port.
void MADRouter::to_others_at_destination(const IngressFrame& frame) {
  for (const u32 slot : read_ports().slots_at(frame.destination)) (void)to_slot(slot, frame);
}

PortTable MADRouter::read_ports() {
  if (!ports_)
    if (Expected<PortDirectory> opened = PortDirectory::open()) ports_ = std::move(*opened);
  return ports_ ? ports_->read() : PortTable();
}

}  // namespace verbena::host
