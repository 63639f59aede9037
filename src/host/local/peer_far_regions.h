// PeerFarRegions: a peer's far regions that we have opened (memory/far_handle.h), each when it is
// first used. A bounded number: one more replaces an old one.
#pragma once

#include <array>

#include "host/cuda/peer_region.h"
#include "host/local/slot_set.h"
#include "memory/published_keys.h"

namespace verbena::host {

class PeerFarRegions {
 public:
  static constexpr u32 kRegions = 256;

  // As for PeerMappings.
  PeerFarRegions(cuda::CudaPeerRegion::Owner owner, SlotSet& mappers, u32 own_slot)
      : owner_(owner), own_slot_(own_slot), mappers_(mappers) {}

  // Returns the region of `key`, or nullptr if we cannot open it. Inside a gate.
  [[nodiscard]] const std::shared_ptr<PeerRegion>& find(const PublishedKeys& keys,
                                                        const PublishedKey& key);
  // Lets go of the regions that no key grants any more. Copies that run keep theirs.
  void drop_withdrawn(const PublishedKeys& keys);

 private:
  struct Place {
    u64 number = 0;  // of the handle; 0: free
    u32 key = 0;
    std::shared_ptr<PeerRegion> region;  // nullptr: it cannot be opened, and is not tried again
  };

  const cuda::CudaPeerRegion::Owner owner_;
  const u32 own_slot_;
  SlotSet& mappers_;
  std::array<Place, kRegions> places_;  // by number
};

}  // namespace verbena::host
