// BTH: Base Transport Header, in every IB transport packet. IBTA Vol 1, 9.2. Network order.
//    0                8               16                              31
//   |    OpCode     |S|M|Pad| TVer  |             P_Key             |
//   |F|B|   rsvd    |                    DestQP                     |
//   |A|K|   rsvd    |                      PSN                      |
// Invariant: decode(encode(h)) == h for valid h. Reserved bits: sent as 0, ignored on receipt.
// K is one of those of the spec, which devices that do not know it ignore; we send it where
// selective repeat is asked for: takes_sack.
#pragma once

#include <optional>
#include <span>

#include "base/psn.h"
#include "base/types.h"
#include "wire/ib/opcode.h"

namespace verbena {

struct BTH {
  static constexpr std::size_t kSize = 12;  // bytes
  Opcode opcode{};
  bool solicited_event = false, mig_req = false;
  u8 pad_count = 0;  // 0..3 bytes between payload and ICRC
  PKey p_key = kDefaultPKey;
  bool fecn = false, becn = false;
  QPN dest_qp{};
  bool ack_req = false;
  bool takes_sack = false;  // request: its sender understands SackETH
  PSN psn{};
  // nullopt on a short buffer or TVer != 0: the caller drops the packet and counts it.
  [[nodiscard]] static std::optional<BTH> decode(std::span<const u8> in);
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const BTH&, const BTH&) = default;
};

}  // namespace verbena
