#include "host/cm/mad_router.h"

#include <algorithm>
#include <cerrno>

#include "connect/comm_id_space.h"
#include "host/qpn_slot.h"
#include "wire/ib/mad.h"

namespace verbena::host {
namespace {

constexpr std::size_t kMADAt = BTH::kSize + DETH::kSize;
constexpr std::size_t kPacketSize = kMADAt + kMADSize + kICRCSize;

}  // namespace

MADRouter::Outcome MADRouter::route(const IngressFrame& frame) {
  if (frame.transport.size() != kPacketSize) return Outcome::kOurs;  // for the device to count
  const auto route = route_of(frame.transport.subspan<kMADAt, kMADSize>());
  if (!route) return Outcome::kOurs;
  switch (route->by) {
    case RouteBy::kServiceId: return to_listener(route->service_id, frame);
    case RouteBy::kCommId: return to_slot(process_slot_of(route->comm_id).value, frame);
    case RouteBy::kEveryProcess: to_all_others(frame); return Outcome::kOurs;
  }
  CHECK_UNREACHABLE();
}

MADRouter::Outcome MADRouter::to_listener(ServiceId service, const IngressFrame& frame) {
  if (!ports_) {
    Expected<PortDirectory> opened = PortDirectory::open();
    if (!opened) return Outcome::kOurs;
    ports_ = std::move(*opened);
  }
  const std::vector<u32> here = slots_at(frame.destination);
  for (const u32 slot : ports_->read().listeners(service, frame.destination)) {
    if (std::ranges::find(here, slot) == here.end()) continue;
    const Outcome outcome = to_slot(slot, frame);
    if (slot == channel_.slot() || outcome != Outcome::kOurs) return outcome;
  }
  return Outcome::kOurs;
}

// kOurs as well where the process is gone.
MADRouter::Outcome MADRouter::to_slot(u32 slot, const IngressFrame& frame) {
  if (slot == channel_.slot() || !is_process_slot(slot)) return Outcome::kOurs;
  if (channel_.send(slot, frame)) return Outcome::kHandedOn;
  return errno == ECONNREFUSED ? Outcome::kOurs : Outcome::kDropped;
}

void MADRouter::to_all_others(const IngressFrame& frame) {
  for (const u32 slot : slots_at(frame.destination)) (void)to_slot(slot, frame);
}

std::vector<u32> MADRouter::slots_at(const GID& address) const {
  std::vector<u32> slots;
  for (const Membership& member : directory_.read().members)
    if (member.address == address) slots.push_back(member.slot);
  return slots;
}

}  // namespace verbena::host
