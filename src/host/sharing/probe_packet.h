// A probe: a datagram to our own port 4791 that asks "which process has socket number `index`?".
// The steering program delivers it by that number; the process that gets it tells the prober's
// slot.
//   | 0xff | 0 0 0 | 0 | index (24) | "VRBN" | nonce (64) | prober's slot (32) |   network order
// 0xff is a BTH OpCode of the manufacturer's range. IBTA Vol 1, table 38.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "base/bytes.h"

namespace verbena::host {

struct ProbePacket {
  static constexpr std::size_t kSize = 24;
  static constexpr u8 kOpCode = 0xff;
  static constexpr u32 kMagic = 0x5652424e;
  static constexpr std::size_t kTargetAt = 4, kMagicAt = 8;  // read by the steering program
  u32 index = 0;
  u64 nonce = 0;
  u32 prober_slot = 0;

  [[nodiscard]] static std::optional<ProbePacket> decode(std::span<const u8> in) {
    if (in.size() != kSize || in[0] != kOpCode) return std::nullopt;
    const Reader<kSize> r(in.first<kSize>());
    if (r.get32<kMagicAt>() != kMagic) return std::nullopt;
    return ProbePacket{
        .index = r.get24<kTargetAt + 1>(), .nonce = r.get64<12>(), .prober_slot = r.get32<20>()};
  }
  [[nodiscard]] std::array<u8, kSize> encode() const {
    std::array<u8, kSize> out{};
    Writer<kSize> w(out);
    w.put8<0>(kOpCode);
    w.put24<kTargetAt + 1>(index);
    w.put32<kMagicAt>(kMagic);
    w.put64<12>(nonce);
    w.put32<20>(prober_slot);
    return out;
  }
  friend bool operator==(const ProbePacket&, const ProbePacket&) = default;
};

}  // namespace verbena::host
