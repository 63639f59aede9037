// PeerMappings: what we have mapped of a peer's regions (memory/shared_span.h), each when it is
// first used, with the rights of its key. A bounded number: one more replaces an old one.
#pragma once

#include <array>

#include "host/local/slot_set.h"
#include "host/mapping.h"
#include "memory/published_keys.h"

namespace verbena::host {

class PeerMappings {
 public:
  static constexpr u32 kMappings = 256;

  // `mappers`, which outlives this, is the peer's; we are `own_slot` there.
  PeerMappings(u32 pid, SlotSet& mappers, u32 own_slot)
      : pid_(pid), own_slot_(own_slot), mappers_(mappers) {}

  // Where we have [address, address + length) of the peer, which `key` grants; nullptr: it cannot
  // be mapped, or not all of it. Inside the gate.
  [[nodiscard]] u8* find(const PublishedKeys& keys, const PublishedKey& key, u64 address,
                         u64 length) {
    if (key.span == 0) return nullptr;
    Place& place = places_[key.span % kMappings];
    if (place.number != key.span) map(keys, key, place);
    const u64 offset = address - place.address;
    const u64 size = place.mapping.size();
    return offset <= size && length <= size - offset ? place.mapping.data() + offset : nullptr;
  }
  // Unmaps what no key grants any more. The peer rings for us when it has withdrawn something.
  void drop_withdrawn(const PublishedKeys& keys);
  [[nodiscard]] u32 count() const;

 private:
  struct Place {
    u64 number = 0;  // of the span; 0: free
    u32 key = 0;
    u64 address = 0;
    Mapping mapping;  // none: it could not be mapped, and is not tried again
  };
  void map(const PublishedKeys& keys, const PublishedKey& key, Place& place) const;

  u32 pid_, own_slot_;
  SlotSet& mappers_;
  std::array<Place, kMappings> places_;  // by number
};

}  // namespace verbena::host
