// GID: a 128-bit port address, in IPv6 form. As in RoCEv2, an IPv4 address is ::ffff:a.b.c.d (RFC
// 4291 2.5.5.2). IBTA Vol 1, 4.1.1; Annex A17.4.
#pragma once

#include <array>
#include <bit>
#include <optional>
#include <string>
#include <string_view>

#include "base/types.h"

namespace verbena {

inline constexpr u32 kMaxFlowLabel = 0xfffff;  // 20 bits, in the GRH and in IPv6

struct GID {
  std::array<u8, 16> bytes{};  // network order

  static constexpr GID from_ipv4(u32 host_order) {
    GID g;
    g.bytes[10] = g.bytes[11] = 0xff;
    for (std::size_t i = 0; i < 4; ++i)
      g.bytes[12 + i] = static_cast<u8>(host_order >> (24 - 8 * i));
    return g;
  }
  constexpr bool is_ipv4() const {
    constexpr u64 kPrefix = std::bit_cast<u64>(std::array<u8, 8>{0, 0, 0xff, 0xff});
    constexpr u64 kMask = std::bit_cast<u64>(std::array<u8, 8>{0xff, 0xff, 0xff, 0xff});
    return halves()[0] == 0 && (halves()[1] & kMask) == kPrefix;
  }
  // Precondition: is_ipv4().
  constexpr u32 ipv4() const {
    return (u32{bytes[12]} << 24) | (u32{bytes[13]} << 16) | (u32{bytes[14]} << 8) | bytes[15];
  }
  constexpr bool is_zero() const { return *this == GID{}; }
  constexpr bool is_link_local() const { return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80; }
  constexpr bool is_multicast() const {
    return bytes[0] == 0xff || (is_ipv4() && (bytes[12] & 0xf0) == 0xe0);
  }
  // "10.77.0.2" for IPv4, RFC 5952 form for the rest.
  [[nodiscard]] std::string to_string() const;
  // Parses the output of to_string(), and the ::ffff: form. Returns nullopt for other text.
  [[nodiscard]] static std::optional<GID> parse(std::string_view text);
  friend constexpr bool operator==(const GID& a, const GID& b) {
    return a.halves()[0] == b.halves()[0] && a.halves()[1] == b.halves()[1];
  }

 private:
  // The bytes as they lie in memory. Each packet compares GIDs several times, which would be slow
  // byte by byte.
  constexpr std::array<u64, 2> halves() const { return std::bit_cast<std::array<u64, 2>>(bytes); }
};

}  // namespace verbena
