// One IB transport packet, BTH to end of payload: the headers as structs, the payload in place.
// IBTA Vol 1, 9.2 - 9.4. Which extended headers are on the wire follows from the OpCode alone
// (traits_of); the other fields of PacketHeaders are then unused and ignored.
// Invariant: decode(encode(h)) == h in the fields that the OpCode carries.
#pragma once

#include <optional>
#include <span>

#include "wire/ib/aeth.h"
#include "wire/ib/atomic_eth.h"
#include "wire/ib/bth.h"
#include "wire/ib/deth.h"
#include "wire/ib/feth.h"
#include "wire/ib/imm_dt.h"
#include "wire/ib/reth.h"
#include "wire/ib/sack_eth.h"
#include "wire/ib/xrceth.h"

namespace verbena {

inline constexpr std::size_t kICRCSize = 4;         // bytes
inline constexpr std::size_t kMaxHeadersSize = 44;  // BTH 12 + XRCETH 4 + AtomicETH 28

struct PacketHeaders {
  BTH bth{};
  XRCETH xrceth{};
  DETH deth{};
  FETH feth{};
  RETH reth{};
  AtomicETH atomic{};
  AETH aeth{};
  AtomicAckETH atomic_ack{};
  ImmDt imm{};
  IETH ieth{};
  SackETH sack{};

  // Returns the number of bytes that encode() writes: OpcodeTraits::headers_size.
  [[nodiscard]] std::size_t size() const { return traits_of(bth.opcode).headers_size; }
  // Writes size() bytes at the start of `out`; out.size() >= size(). The OpCode must be valid.
  void encode(std::span<u8> out) const;
  friend bool operator==(const PacketHeaders&, const PacketHeaders&) = default;
};

struct PacketView {
  PacketHeaders headers{};
  std::span<const u8> payload{};  // pad bytes removed

  // `in` is BTH .. end of pad, without the ICRC. Returns nullopt if it is short for its OpCode, for
  // TVer != 0, a reserved OpCode, payload where none may be, or pad longer than the payload.
  [[nodiscard]] static std::optional<PacketView> decode(std::span<const u8> in);
  // The same for headers that lie apart from their payload, and nothing else.
  [[nodiscard]] static std::optional<PacketView> decode(std::span<const u8> headers,
                                                        std::span<const u8> payload);
  // Both in place, for a view that is used again and again. Fields that the OpCode does not carry
  // keep their values. Returns false where decode() returns nullopt; then the view is invalid.
  [[nodiscard]] bool assign(std::span<const u8> in);
  [[nodiscard]] bool assign(std::span<const u8> headers, std::span<const u8> payload);
};

}  // namespace verbena
