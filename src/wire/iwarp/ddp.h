// DDP: the placement of a segment's payload. RFC 5041, 4. Network order. The byte behind DDP's own
// is RDMAP's control (rdmap.h).
//   tagged   |T|L| rsvd  |DV |  control  | STag (32) | TO (64) |
//   untagged |T|L| rsvd  |DV |  control  | for the ULP (32) | QN (32) | MSN (32) | MO (32) |
// Invariant: decode(encode(h)) == h for valid h. Reserved bits: sent as 0, ignored on receipt.
#pragma once

#include <optional>
#include <span>

#include "base/types.h"
#include "wire/iwarp/framing.h"

namespace verbena::iwarp {

inline constexpr u8 kDDPVersion = 1;

// Payload for a buffer that the sender names.
struct DDPTagged {
  static constexpr std::size_t kSize = kTaggedHeader;  // bytes
  bool last = false;                                   // of the message
  u8 control = 0;                                      // RDMAP's
  u32 stag = 0;
  u64 offset = 0;  // TO
  // Returns nullopt if it is short, untagged, or of another version.
  [[nodiscard]] static std::optional<DDPTagged> decode(std::span<const u8> in);
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const DDPTagged&, const DDPTagged&) = default;
};

// Payload for the next buffer of one of the receiver's queues.
struct DDPUntagged {
  static constexpr std::size_t kSize = kUntaggedHeader;  // bytes
  bool last = false;
  u8 control = 0;
  u32 invalidate_stag = 0;  // RDMAP's use of the ULP's field. RFC 5040, 4.4
  u32 queue = 0;            // QN
  u32 message = 0;          // MSN, from 1
  u32 offset = 0;           // MO
  [[nodiscard]] static std::optional<DDPUntagged> decode(std::span<const u8> in);
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const DDPUntagged&, const DDPUntagged&) = default;
};

}  // namespace verbena::iwarp
