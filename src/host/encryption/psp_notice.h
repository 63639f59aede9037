// PSPNotice: "I know no association with this SPI". A receiver sends it to the sender of a packet
// that it cannot decrypt, because its process or its master key is new. It is not authenticated,
// and only makes the sender ask for a new key, at most once in KeyAgent::kMinInterval. The steering
// program delivers it as it does packets: by the SPI's place.
//   | 0xff | 0 0 0 | the sender's slot, as in an SPI (32) | "VRBI" | SPI (32) | 0 (64) |
#pragma once

#include <array>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "host/encryption/host_keys.h"

namespace verbena::host {

struct PSPNotice {
  static constexpr std::size_t kSize = 24;
  static constexpr u8 kCode = 0xff;  // no IP protocol number, hence no PSP header
  static constexpr u32 kMagic = 0x56524249;
  u32 slot = 0;
  u32 spi = 0;

  [[nodiscard]] static std::optional<PSPNotice> decode(std::span<const u8> in) {
    if (in.size() != kSize || in[0] != kCode) return std::nullopt;
    const Reader<kSize> r(in.first<kSize>());
    if (r.get32<8>() != kMagic) return std::nullopt;
    return PSPNotice{.slot = slot_of_spi(r.get32<4>()), .spi = r.get32<12>()};
  }
  [[nodiscard]] std::array<u8, kSize> encode() const {
    std::array<u8, kSize> out{};
    Writer<kSize> w(out);
    w.put8<0>(kCode);
    w.put32<4>(slot << kSPINumberBits);
    w.put32<8>(kMagic);
    w.put32<12>(spi);
    return out;
  }
  friend bool operator==(const PSPNotice&, const PSPNotice&) = default;
};

}  // namespace verbena::host
