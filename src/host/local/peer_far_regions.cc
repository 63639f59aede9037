#include "host/local/peer_far_regions.h"

namespace verbena::host {

const std::shared_ptr<PeerRegion>& PeerFarRegions::find(const PublishedKeys& keys,
                                                        const PublishedKey& key) {
  Place& place = places_[key.span % kRegions];
  if (place.number == key.span) return place.region;
  place = {.number = key.span, .key = key.key, .region = nullptr};
  const std::optional<FarHandle> handle = keys.handle_of(RKey{key.key}, key.span);
  if (!handle) return place.region;
  mappers_.add(own_slot_);
  place.region = cuda::CudaPeerRegion::make(*handle, owner_);
  return place.region;
}

void PeerFarRegions::drop_withdrawn(const PublishedKeys& keys) {
  for (Place& place : places_) {
    if (place.number == 0) continue;
    const std::optional<PublishedKey> published = keys.find(place.key);
    if (!published || published->span != place.number) place = {};
  }
}

}  // namespace verbena::host
