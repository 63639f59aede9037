#include "host/cm/port_table.h"

#include <algorithm>

namespace verbena::host {
namespace {

bool collide(const PortRecord& a, const PortRecord& b) {
  return a.service == b.service && a.address == b.address && a.owner != b.owner;
}

std::vector<u32> each_once(std::vector<u32> slots) {
  std::ranges::sort(slots);
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  return slots;
}

}  // namespace

bool PortTable::is_taken(const PortRecord& wanted) const {
  return std::ranges::any_of(records_, [&](const PortRecord& record) {
    return collide(record, wanted) && !(record.reusable && wanted.reusable);
  });
}

bool PortTable::is_shared(u64 owner) const {
  return std::ranges::any_of(records_, [&](const PortRecord& own) {
    return own.owner == owner && std::ranges::any_of(records_, [&](const PortRecord& record) {
             return collide(record, own);
           });
  });
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

std::optional<u32> PortTable::listener(ServiceId service, const GID& address) const {
  const auto found = std::ranges::find_if(records_, [&](const PortRecord& record) {
    return record.listening && record.service == service && record.address == address;
  });
  return found == records_.end() ? std::nullopt : std::optional(found->slot);
}

std::vector<u32> PortTable::slots() const {
  std::vector<u32> slots;
  for (const PortRecord& record : records_) slots.push_back(record.slot);
  return each_once(std::move(slots));
}

std::vector<u32> PortTable::slots_at(const GID& address) const {
  std::vector<u32> slots;
  for (const PortRecord& record : records_)
    if (record.address == address) slots.push_back(record.slot);
  return each_once(std::move(slots));
}

}  // namespace verbena::host
