// SackETH: Selective Acknowledge Extended Transport Header: the requests that have arrived although
// earlier ones have not. Verbena's own, after BTH and AETH in a packet of the manufacturer defined
// OpCode 0xd1 (kSackOpcode). The idea is IRN's NACK (Mittal et al., Revisiting Network Support for
// RDMA, SIGCOMM 2018, 3.1). Sent only to a requester that has asked for it (BTH::takes_sack).
// Network order.
//    0                8               16                              31
//   |   reserved    |                  first PSN                    |
//   |                  bits 63:32, then bits 31:0                   |
// Bit i is the packet of PSN first + i. The BTH's PSN is the oldest missing one.
// Invariant: decode(encode(h)) == h; `first` is a multiple of 64.
#pragma once

#include <optional>
#include <span>

#include "base/psn.h"

namespace verbena {

struct SackETH {
  static constexpr std::size_t kSize = 12;  // bytes
  static constexpr u32 kPSNs = 64;
  PSN first{};
  u64 bits = 0;
  // Returns nullopt if it is short, or `first` is not a multiple of 64.
  [[nodiscard]] static std::optional<SackETH> decode(std::span<const u8> in);
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const SackETH&, const SackETH&) = default;
};

}  // namespace verbena
