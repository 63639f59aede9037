// ReorderBuffer: early requests, as an RC responder with selective repeat keeps them: headers and
// payload, to be executed when the missing packets have arrived.
//
// Why it keeps them, and does not place them at once: IRN (Mittal et al., Revisiting Network
// Support for RDMA, SIGCOMM 2018, 4 and 5) has a card write the payload to the application's memory
// at once. For that, every WRITE packet carries a RETH and every SEND the number of its receive
// WQE, and the card holds completions back. A card does so because it lacks memory. Software has
// memory: a copy of the few early packets leaves all packets as in the standard. Each request is
// executed once, in PSN order, whatever may arrive: keys, bounds, receives, atomics, completions
// and errors need no second set of rules.
//
// The buffer keeps at most `packets`. Most QPs never keep one: the memory is allocated once, when
// the first arrives. Payload that is not in this process (is_here() is false, as in a simulation)
// is counted and not copied, and needs no memory.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "transport/rc/psn_set.h"
#include "wire/ib/packet.h"

namespace verbena {

class ReorderBuffer {
 public:
  // The kept PSNs lie within `window` of each other and of the next expected one.
  ReorderBuffer(u32 window, u32 packets, u32 packet_bytes);

  [[nodiscard]] u32 window() const { return window_; }
  [[nodiscard]] bool empty() const { return kept_count_ == 0; }
  [[nodiscard]] bool has(PSN psn) const { return kept_.has(psn); }
  // Returns which of the 64 PSNs around this one are kept.
  [[nodiscard]] SackETH around(PSN psn) const;

  // Ignores a packet that is kept already, has more payload than a packet may, or finds no room: it
  // counts as lost.
  void keep(const PacketView& packet);
  // Takes the packet. Its place is free again, but the payload stays valid until the next keep().
  [[nodiscard]] std::optional<PacketView> take(PSN psn);

 private:
  struct Slot {  // uninitialized until it is used
    std::array<u8, kMaxHeadersSize> headers;
    u32 headers_bytes, payload_bytes;
    bool has_bytes;
  };
  void make_room(bool has_bytes);
  u8* payload_at(u32 slot) { return payload_.get() + std::size_t{slot} * packet_bytes_; }

  const u32 window_, packets_, packet_bytes_;
  PSNSet kept_;
  std::unique_ptr<u32[]> slot_of_;  // by the PSN's slot in kept_
  std::unique_ptr<u32[]> free_;     // a stack: the place used last is used next
  u32 kept_count_ = 0;
  std::unique_ptr<Slot[]> slots_;
  std::unique_ptr<u8[]> payload_;
};

}  // namespace verbena
