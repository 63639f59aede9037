#include "host/cm/port_table.h"

#include <algorithm>

namespace verbena::host {
namespace {

bool families_overlap(const PortRecord& a, const PortRecord& b) {
  return a.family == ListenFamily::kAny || b.family == ListenFamily::kAny || a.family == b.family;
}

bool overlap(const PortRecord& a, const PortRecord& b) {
  return a.service == b.service && a.owner != b.owner && families_overlap(a, b) &&
         (a.address.is_zero() || b.address.is_zero() || a.address == b.address);
}

bool serves(const PortRecord& record, ServiceId service, const GID& address) {
  if (!record.listening || record.service != service) return false;
  if (!record.address.is_zero()) return record.address == address;
  switch (record.family) {
    case ListenFamily::kAny: return true;
    case ListenFamily::kIPv4: return address.is_ipv4();
    case ListenFamily::kIPv6: return !address.is_ipv4();
  }
  return false;  // a damaged record
}

}  // namespace

const PortRecord* PortTable::find_conflict(const PortRecord& wanted) const {
  const auto found = std::ranges::find_if(records_, [&](const PortRecord& record) {
    return overlap(record, wanted) && !(record.reusable && wanted.reusable);
  });
  return found == records_.end() ? nullptr : &*found;
}

const PortRecord* PortTable::find_listen_conflict(u64 owner) const {
  for (const PortRecord& own : records_) {
    if (own.owner != owner) continue;
    const auto other = std::ranges::find_if(
        records_, [&](const PortRecord& record) { return overlap(record, own); });
    if (other != records_.end()) return &*other;
  }
  return nullptr;
}

std::optional<u16> PortTable::find_free(PortSpace space, u64 random) const {
  constexpr u32 kPorts = kLastEphemeral - kFirstEphemeral + 1;
  std::vector<bool> taken(kPorts, false);
  for (const PortRecord& record : records_) {
    const auto service = service_port_of(record.service);
    if (service && service->space == space && service->port >= kFirstEphemeral &&
        service->port <= kLastEphemeral)
      taken[service->port - kFirstEphemeral] = true;
  }
  for (u32 i = 0; i < kPorts; ++i) {
    const u32 offset = static_cast<u32>((random + i) % kPorts);
    if (!taken[offset]) return static_cast<u16>(kFirstEphemeral + offset);
  }
  return std::nullopt;
}

bool PortTable::add(const PortRecord& record) {
  if (records_.size() >= kMaxRecords) return false;
  records_.push_back(record);
  return true;
}

void PortTable::set_listening(u64 owner) {
  for (PortRecord& record : records_)
    if (record.owner == owner) record.listening = true;
}

void PortTable::release(u64 owner) {
  std::erase_if(records_, [&](const PortRecord& record) { return record.owner == owner; });
}

void PortTable::forget(u32 slot) {
  std::erase_if(records_, [&](const PortRecord& record) { return record.slot == slot; });
}

std::vector<u32> PortTable::slots() const {
  std::vector<u32> slots;
  for (const PortRecord& record : records_) slots.push_back(record.slot);
  std::ranges::sort(slots);
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  return slots;
}

std::vector<u32> PortTable::listeners(ServiceId service, const GID& address) const {
  std::vector<u32> slots;
  for (const bool exact : {true, false})
    for (const PortRecord& record : records_)
      if (record.address.is_zero() != exact && serves(record, service, address))
        slots.push_back(record.slot);
  return slots;
}

}  // namespace verbena::host
