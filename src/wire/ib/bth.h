// BTH: Base Transport Header, in every IB transport packet. IBTA Vol 1, 9.2. Network order.
//    0                8               16                              31
//   |    OpCode     |S|M|Pad| TVer  |             P_Key             |
//   |F|B|   rsvd    |                    DestQP                     |
//   |A|K|   rsvd    |                      PSN                      |
// Invariant: decode(encode(h)) == h for valid h. Reserved bits: sent as 0, ignored on receipt.
// K is a reserved bit of the spec, which devices that do not know it ignore. We set it if selective
// repeat is requested: takes_sack.
#pragma once

#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/check.h"
#include "base/psn.h"
#include "base/types.h"
#include "wire/ib/opcode.h"

namespace verbena {

struct BTH {
  static constexpr std::size_t kSize = 12;     // bytes
  static constexpr std::size_t kDestQPAt = 5;  // offsets
  static constexpr std::size_t kPSNAt = 9;
  Opcode opcode{};
  bool solicited_event = false, mig_req = false;
  u8 pad_count = 0;  // 0..3 bytes between payload and ICRC
  PKey p_key = kDefaultPKey;
  bool fecn = false, becn = false;
  QPN dest_qp{};
  bool ack_req = false;
  bool takes_sack = false;  // request: its sender understands SackETH
  PSN psn{};
  // Returns nullopt on a short buffer or TVer != 0: the caller drops the packet and counts it.
  [[nodiscard]] static std::optional<BTH> decode(std::span<const u8> in);
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const BTH&, const BTH&) = default;
};

// Word by word, and inline, because it runs for each packet.

inline std::optional<BTH> BTH::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  const Reader<kSize> r(in.first<kSize>());
  const u32 first = r.get32<0>(), second = r.get32<4>(), third = r.get32<8>();
  if ((first >> 16 & 0xf) != 0) return std::nullopt;  // TVer
  return BTH{.opcode = Opcode::from_byte(static_cast<u8>(first >> 24)),
             .solicited_event = (first >> 23 & 1) != 0,
             .mig_req = (first >> 22 & 1) != 0,
             .pad_count = static_cast<u8>(first >> 20 & 3),
             .p_key = PKey{static_cast<u16>(first)},
             .fecn = second >> 31 != 0,
             .becn = (second >> 30 & 1) != 0,
             .dest_qp = QPN{second & kMask24},
             .ack_req = third >> 31 != 0,
             .takes_sack = (third >> 30 & 1) != 0,
             .psn = PSN{third}};
}

inline void BTH::encode(std::span<u8, kSize> out) const {
  CHECK(pad_count <= 3 && dest_qp.value <= kMask24);
  Writer<kSize> w(out);
  w.put32<0>(u32{opcode.to_byte()} << 24 | u32{solicited_event} << 23 | u32{mig_req} << 22 |
             u32{pad_count} << 20 | p_key.value);
  w.put32<4>(u32{fecn} << 31 | u32{becn} << 30 | dest_qp.value);
  w.put32<8>(u32{ack_req} << 31 | u32{takes_sack} << 30 | psn.value());
}

}  // namespace verbena
