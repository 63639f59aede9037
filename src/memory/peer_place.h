// PeerPlace: a place in a peer's far region, as this process's driver reaches it. A copy between it
// and far memory of ours needs neither packets nor host memory (CopyOp::kToPeer, kFromPeer).
#pragma once

#include <memory>

#include "base/types.h"

namespace verbena {

// A kind of far memory derives its own from it, as from FarMemory.
class PeerRegion {
 public:
  virtual ~PeerRegion() = default;
};

struct PeerPlace {
  std::shared_ptr<PeerRegion> region;
  u64 offset = 0;                    // in the region
  std::shared_ptr<const void> hold;  // while it exists, the peer's key stays valid
};

}  // namespace verbena
