// PeerMappings: our mappings of a peer's regions (memory/shared_span.h). Each is made when it is
// first used, with the rights of its key. A bounded number: one more replaces an old one.
//
// The protection of the peer's pages holds for our mappings, too: a copy asks the kernel whether
// the peer still has these pages of the file there, with the right that the copy needs. It trusts a
// "yes" for a while: kTrust, or up to kMaxTrust if the question takes long. A question takes as
// long as a short copy by the kernel, so one for each copy would remove the benefit of a mapping.
#pragma once

#include <array>

#include "base/time.h"
#include "host/local/address_space.h"
#include "host/local/slot_set.h"
#include "host/os/mapping.h"
#include "host/os/quick_clock.h"
#include "memory/published_keys.h"

namespace verbena::host {

class PeerMappings {
 public:
  static constexpr u32 kMappings = 256;
  static constexpr Duration kTrust = us(100), kMaxTrust = ms(10);
  static constexpr i64 kTimesQuestion = 100;  // as long as so many questions

  // `mappers`, which outlives this, is the peer's; we are `own_slot` there.
  PeerMappings(u32 pid, SlotSet& mappers, u32 own_slot)
      : pid_(pid), own_slot_(own_slot), mappers_(mappers) {}

  // Returns where we have mapped [address, address + length) of the peer, which `key` grants.
  // Returns nullptr if all or part of it cannot be mapped, or if the peer itself may not access it
  // so. Inside the gate.
  [[nodiscard]] u8* find(const PublishedKeys& keys, const PublishedKey& key, u64 address,
                         u64 length, Access need) {
    if (key.span == 0) return nullptr;
    Place& place = places_[key.span % kMappings];
    if (place.number != key.span) map(keys, key, place);
    const u64 offset = address - place.span.address;
    const u64 size = place.mapping.size();
    if (offset > size || length > size - offset || !may(need, place)) return nullptr;
    return place.mapping.data() + offset;
  }
  // Unmaps the regions that no key grants any more. The peer rings when it has withdrawn a key.
  void drop_withdrawn(const PublishedKeys& keys);
  [[nodiscard]] u32 count() const;

 private:
  struct Place {
    u64 number = 0;  // of the span; 0: free
    u32 key = 0;
    SharedSpan span{};
    Mapping mapping;  // none: it could not be mapped, and is not tried again
    // Until when we believe that the peer may read and write it.
    Time readable_until{}, writable_until{};
  };
  void map(const PublishedKeys& keys, const PublishedKey& key, Place& place) const;
  [[nodiscard]] bool may(Access need, Place& place);
  [[nodiscard]] bool peer_may(Access need, const SharedSpan& span);

  u32 pid_, own_slot_;
  SlotSet& mappers_;
  QuickClock clock_;
  std::optional<AddressSpace> peer_;     // nullopt: nothing was mapped yet
  std::array<Place, kMappings> places_;  // by number
};

}  // namespace verbena::host
