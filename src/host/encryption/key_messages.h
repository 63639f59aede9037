// The messages that two hosts exchange inside TLS to agree on the key of one PSP association. The
// sender asks; the receiver answers with an SPI and the key that it derives from it. Network order.
//   question: | "VPSP" | 1 | PSP version | slot (16) | reserved (64) |
//   answer:   | "VPSK" | status | PSP version | reserved (16) | SPI (32) |
//             | renew after (32, s) | expires after (32, s) | key (256) |
#pragma once

#include <array>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "host/encryption/host_keys.h"

namespace verbena::host {

struct KeyQuestion {
  static constexpr std::size_t kSize = 16;
  PSPVersion version = PSPVersion::kAES128GCM;
  u16 slot = 0;

  // Returns nullopt if this is no question of this protocol, or if it asks for something
  // unavailable.
  [[nodiscard]] static std::optional<KeyQuestion> decode(std::span<const u8, kSize> in);
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const KeyQuestion&, const KeyQuestion&) = default;
};

struct KeyAnswer {
  static constexpr std::size_t kSize = 52;

  // Returns nullopt if the answer is a refusal, or no answer of this protocol.
  [[nodiscard]] static std::optional<IssuedAssociation> decode(std::span<const u8, kSize> in);
  static void encode(const IssuedAssociation& issued, std::span<u8, kSize> out);
  static void encode_refusal(std::span<u8, kSize> out);
};

}  // namespace verbena::host
