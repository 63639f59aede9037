// AuthSecret: a key of DH-HMAC-CHAP in its text form, as `nvme gen-dhchap-key` prints it:
//   DHHC-1:HH:BASE64:
// HH is the hash that transforms the key (00: none), BASE64 are the key's 32, 48 or 64 bytes and
// their CRC-32, little endian. NVM Express Base 2.0, 8.13.5.8.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "nvmf/authentication/cryptography.h"

namespace verbena::nvmf {

struct AuthSecret {
  std::vector<u8> key{};
  std::optional<nvme::AuthHash> transform{};

  // nullopt: the text has another form, or its CRC does not match.
  [[nodiscard]] static std::optional<AuthSecret> parse(std::string_view text);
  // The key that authenticates the entity with that NQN: HMAC(key, NQN || "NVMe-over-Fabrics").
  [[nodiscard]] std::vector<u8> transformed(const Cryptography& cryptography,
                                            std::string_view nqn) const;
};

}  // namespace verbena::nvmf
