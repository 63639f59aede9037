#include "host/cm/mad_router.h"

#include <algorithm>
#include <cerrno>

#include "connect/comm_id_space.h"
#include "host/sharing/qpn_slot.h"

namespace verbena::host {

MADRouter::Outcome MADRouter::route(const IngressFrame& frame, Time now) {
  if (frame.transport.size() != kPacketSize) return Outcome::kOurs;  // for the device to count
  const auto route = route_of(frame.transport.subspan<kMADAt, kMADSize>());
  if (!route) return Outcome::kOurs;
  switch (route->by) {
    case RouteBy::kServiceId: return to_listener(route->service_id, frame, now);
    case RouteBy::kCommId: return to_slot(process_slot_of(route->comm_id).value, frame, now);
    case RouteBy::kEveryProcess: to_others_at_destination(frame, now); return Outcome::kOurs;
  }
  CHECK_UNREACHABLE();
}

MADRouter::Outcome MADRouter::to_listener(ServiceId service, const IngressFrame& frame, Time now) {
  const std::optional<u32> slot = read_ports().listener(service, frame.destination);
  return slot ? to_slot(*slot, frame, now) : keep(service, frame, now);
}

MADRouter::Outcome MADRouter::keep(ServiceId service, const IngressFrame& frame, Time now) {
  if (kept_.size() >= kMaxKept) return Outcome::kOurs;
  if (kept_.empty()) next_look_ = now + kLookInterval;
  kept_.push_back(Kept{.copy = Copy(frame), .service = service, .until = now + kGrace});
  return Outcome::kKept;
}

MADRouter::Outcome MADRouter::wait(u32 slot, const IngressFrame& frame, Time now) {
  if (waiting_.size() >= kMaxWaiting) return Outcome::kDropped;
  if (waiting_.empty()) next_retry_ = now + kRetryInterval;
  waiting_.push_back(Waiting{.copy = Copy(frame), .slot = slot, .until = now + kGrace});
  return Outcome::kKept;
}

bool MADRouter::poll_kept(IngressFrame& out, Time now) {
  return (now >= next_retry() && retry(out, now)) ||
         (now >= next_look() && look_for_listeners(out, now));
}

bool MADRouter::look_for_listeners(IngressFrame& out, Time now) {
  const PortTable ports = read_ports();
  for (auto it = kept_.begin(); it != kept_.end();) {
    const std::optional<u32> slot = ports.listener(it->service, it->copy.frame.destination);
    if (!slot && now < it->until) {
      ++it;
      continue;
    }
    polled_ = it->copy;
    it = kept_.erase(it);
    out = polled_->get();
    if (!slot || to_slot(*slot, out, now) == Outcome::kOurs) return true;
  }
  next_look_ = now + kLookInterval;
  return false;
}

// Retries frames until one finds no room again. That one goes to the end of the queue: another
// process may have room. A frame that has waited for kGrace is dropped: its process does not run.
bool MADRouter::retry(IngressFrame& out, Time now) {
  next_retry_ = now + kRetryInterval;
  while (!waiting_.empty()) {
    Waiting first = waiting_.front();
    waiting_.pop_front();
    if (now >= first.until) continue;
    if (channel_.send(first.slot, first.copy.get())) continue;
    if (errno == EAGAIN) {
      waiting_.push_back(first);
      return false;
    }
    polled_ = first.copy;
    out = polled_->get();
    return true;
  }
  return false;
}

// kOurs as well where the process is gone.
MADRouter::Outcome MADRouter::to_slot(u32 slot, const IngressFrame& frame, Time now) {
  if (slot == channel_.slot() || !is_process_slot(slot)) return Outcome::kOurs;
  if (channel_.send(slot, frame)) return Outcome::kHandedOn;
  if (errno == ECONNREFUSED) return Outcome::kOurs;
  return errno == EAGAIN ? wait(slot, frame, now) : Outcome::kDropped;
}

// Every process with a connection holds a port.
void MADRouter::to_others_at_destination(const IngressFrame& frame, Time now) {
  for (const u32 slot : read_ports().slots_at(frame.destination)) (void)to_slot(slot, frame, now);
}

PortTable MADRouter::read_ports() {
  if (!ports_)
    if (Expected<PortDirectory> opened = PortDirectory::open()) ports_ = std::move(*opened);
  return ports_ ? ports_->read() : PortTable();
}

}  // namespace verbena::host
