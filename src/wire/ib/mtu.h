// Path MTU: the payload bytes of a full packet. IBTA Vol 1, 9.2 and 14.2.5.6 (PortInfo:MTUCap).
// MADs, QP attributes and the CM carry the code; the size is 128 * 2^code bytes.
#pragma once

#include <bit>
#include <optional>

#include "base/types.h"

namespace verbena {

enum class MTU : u8 { k256 = 1, k512 = 2, k1024 = 3, k2048 = 4, k4096 = 5 };

constexpr u32 bytes(MTU mtu) { return 128u << static_cast<u8>(mtu); }

// Returns nullopt if it is not one of the five sizes.
constexpr std::optional<MTU> mtu_from_bytes(u32 size_bytes) {
  if (size_bytes < 256 || size_bytes > 4096 || !std::has_single_bit(size_bytes))
    return std::nullopt;
  return static_cast<MTU>(std::countr_zero(size_bytes) - 7);
}

// Returns nullopt if it is not one of the five codes.
constexpr std::optional<MTU> mtu_from_code(u8 code) {
  if (code < 1 || code > 5) return std::nullopt;
  return static_cast<MTU>(code);
}

// The longest headers and trailer of RoCEv2: IPv6 40, UDP 8, BTH 12, XRCETH 4, AtomicETH 28, ICRC
// 4. Linux and cards use the same number, so both ends compute the same MTU.
inline constexpr u32 kRoCEOverheadBytes = 96;

// Returns the largest MTU for a link whose IP packets may have `link_mtu_bytes`; nullopt if not
// even 256.
constexpr std::optional<MTU> largest_mtu_for_link(u32 link_mtu_bytes) {
  for (const MTU mtu : {MTU::k4096, MTU::k2048, MTU::k1024, MTU::k512, MTU::k256})
    if (link_mtu_bytes >= bytes(mtu) + kRoCEOverheadBytes) return mtu;
  return std::nullopt;
}

}  // namespace verbena
