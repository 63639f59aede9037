// PeerMemory: the memory of a peer on the same host, as a requester reaches it without packets.
//
// Rule: it does only what the peer's responder would do, and never refuses in its place. If it
// cannot do an operation, for whatever reason (a key that does not exist, a right that is not
// granted, memory that has gone, a peer that has ended), the requester sends packets, which are
// answered as on any wire. So errors, their completions, states and events are those of the wire by
// construction. The driver implements it: src/host/local/. Calls block while they copy.
#pragma once

#include <memory>
#include <span>

#include "memory/peer_place.h"
#include "memory/sg_walk.h"
#include "transport/local/local_counts.h"
#include "transport/qp_attributes.h"

namespace verbena {

struct PeerRange {  // one message, or a part of it
  RKey r_key;
  u64 address = 0;
  u32 length_bytes = 0;  // never 0
  bool ends_message = true;
};

enum class Admission : u8 {
  kAdmitted,
  kRefused,      // some ranges cannot be reached
  kOtherMemory,  // some ranges are not in far memory
};

class PeerMemory {
 public:
  static constexpr u32 kMaxRanges = 64;  // in one call
  static constexpr u32 kMaxPieces = 128;

  virtual ~PeerMemory() = default;
  // Returns whether the QP's peer has executed all requests before this PSN, and none from it on.
  [[nodiscard]] virtual bool has_executed(const QPAttributes& qp, PSN before) const = 0;
  // Copies the pieces, one after the other, to the ranges, in order; the last bytes of each become
  // visible last. The QP's peer must accept each at this moment. Returns false if some were not
  // copied, or only in part. Precondition: both have the same number of bytes.
  [[nodiscard]] virtual bool write(const QPAttributes& qp, std::span<const MemoryPiece> from,
                                   std::span<const PeerRange> to) = 0;
  [[nodiscard]] virtual bool read(const QPAttributes& qp, std::span<const PeerRange> from,
                                  std::span<const MemoryPiece> to) = 0;

  // --- far memory of both ends: the requester copies between it and the places itself
  // (transport/late_copy.h).
  // Finds the ranges, all in the peer's far memory. The QP's peer must accept each at this moment,
  // and its keys stay valid as long as the places exist.
  [[nodiscard]] virtual Admission admit(const QPAttributes&, Access, std::span<const PeerRange>,
                                        std::span<PeerPlace>) {
    return Admission::kRefused;
  }
  // Such copies have ended well: the peer counts them.
  virtual void on_copied(const QPAttributes&, const LocalWork&) {}
};

class PeerMemoryFinder {
 public:
  virtual ~PeerMemoryFinder() = default;
  // Finds the memory of a connected QP's peer. Returns nullptr if the peer is on another host, or
  // cannot be reached without packets.
  [[nodiscard]] virtual std::shared_ptr<PeerMemory> find(const QPAttributes& qp) = 0;
};

}  // namespace verbena
