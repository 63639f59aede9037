// ReorderBuffer: requests that have come before their turn, as an RC responder with selective
// repeat keeps them: headers and payload, to be executed when what is missing has come.
//
// Why it keeps them, and does not place them as they come: IRN (Mittal et al., Revisiting Network
// Support for RDMA, SIGCOMM 2018, 4 and 5) has a card write the payload to the application's memory
// at once, for which every WRITE packet carries a RETH and every SEND the number of its receive
// WQE, and completions are held back in the card. A card does so for want of memory. We have some:
// a copy of what came out of order, which is little, leaves all packets as the standard has them,
// and execution in PSN order, each request once, whatever may arrive: keys, bounds, receives,
// atomics, completions and errors need no second set of rules.
//
// No more than `packets` are ever kept. Most QPs never see one: the memory is taken when the first
// comes, once and for all. Payload that is no memory of ours (is_here(): a simulation's) is counted
// and not copied, and takes none.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "transport/rc/psn_set.h"
#include "wire/ib/packet.h"

namespace verbena {

class ReorderBuffer {
 public:
  // The PSNs of what it keeps lie within `window` of each other and of the one that is awaited.
  ReorderBuffer(u32 window, u32 packets, u32 packet_octets);

  [[nodiscard]] u32 window() const { return window_; }
  [[nodiscard]] bool empty() const { return kept_count_ == 0; }
  [[nodiscard]] bool has(PSN psn) const { return kept_.has(psn); }
  // What is kept of the 64 PSNs around this one.
  [[nodiscard]] SackETH around(PSN psn) const;

  // As if lost where it is here already, has more payload than a packet may, or finds no room.
  void keep(const PacketView& packet);
  // Its place is free again, but the payload stays good until the next keep().
  [[nodiscard]] std::optional<PacketView> take(PSN psn);

 private:
  struct Slot {  // not initialized before it is used
    std::array<u8, kMaxHeadersSize> headers;
    u32 headers_octets, payload_octets;
    bool has_bytes;
  };
  void make_room(bool has_bytes);
  u8* payload_at(u32 slot) { return payload_.get() + std::size_t{slot} * packet_octets_; }

  const u32 window_, packets_, packet_octets_;
  PSNSet kept_;
  std::unique_ptr<u32[]> slot_of_;  // by the PSN's slot in kept_
  std::unique_ptr<u32[]> free_;     // a stack: what was used last is used next
  u32 kept_count_ = 0;
  std::unique_ptr<Slot[]> slots_;
  std::unique_ptr<u8[]> payload_;
};

}  // namespace verbena
