// PSPKey: the key of one PSP association, and how it is derived from a master key: AES-256-CMAC as
// the PRF in counter mode of NIST SP 800-108. PSP Architecture Specification, "Key Derivation".
#pragma once

#include <array>
#include <span>

#include "base/types.h"
#include "host/encryption/openssl.h"
#include "wire/psp/psp_header.h"

namespace verbena::host {

inline constexpr std::size_t kPSPMasterKeySize = 32;
using PSPMasterKey = std::array<u8, kPSPMasterKeySize>;

struct PSPKey {
  static constexpr std::size_t kMaxSize = 32;
  PSPVersion version = PSPVersion::kAES128GCM;
  std::array<u8, kMaxSize> bytes{};  // size() of them

  [[nodiscard]] std::size_t size() const { return version == PSPVersion::kAES128GCM ? 16 : 32; }
  [[nodiscard]] std::span<const u8> used() const { return std::span(bytes).first(size()); }
  friend bool operator==(const PSPKey&, const PSPKey&) = default;
};

// Returns whether packets of this version can be encrypted here: the two that are not only
// authenticated.
[[nodiscard]] constexpr bool is_encrypted(PSPVersion version) {
  return version == PSPVersion::kAES128GCM || version == PSPVersion::kAES256GCM;
}

// Precondition: is_encrypted(version).
[[nodiscard]] PSPKey derive_psp_key(const OpenSSL& ssl, const PSPMasterKey& master, u32 spi,
                                    PSPVersion version);

}  // namespace verbena::host
