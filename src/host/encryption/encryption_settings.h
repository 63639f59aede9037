// Whether and how a device encrypts, as the user says it. VERBENA_ENCRYPTION, comma-separated:
//   psk:FILE                  hosts prove that they know the content of FILE, 16 bytes at least
//   tls:cert=F,key=F,ca=F     hosts prove their identity by certificates (PEM) of the authority
//   cipher=aes-gcm-128|aes-gcm-256   of packets that this host sends (128)
//   crypt_offset=N            units of 4 bytes behind the PSP header that stay in clear (0)
//   rotate=SECONDS            how long a master key issues keys; each is valid as long again
//   rotate_packets=N          packets after which a sender asks for a new key
//   port=N                    of UDP and TCP (1000)
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "host/os/error.h"
#include "wire/psp/psp_header.h"

namespace verbena::host {

inline constexpr const char* kEncryptionVariable = "VERBENA_ENCRYPTION";
// A file to which each new key is appended, so that a capture can be decrypted.
inline constexpr const char* kEncryptionKeyLogVariable = "VERBENA_ENCRYPTION_KEYLOG";

struct EncryptionSettings {
  std::string psk_file{};  // empty: certificates
  std::string certificate_file{}, key_file{}, authority_file{};
  PSPVersion version = PSPVersion::kAES128GCM;
  u8 crypt_offset = 0;
  Duration rotation = sec(12 * 3600);
  u64 rotation_packets = u64{1} << 32;
  u16 port = kPSPPort;

  [[nodiscard]] bool uses_psk() const { return !psk_file.empty(); }
  friend bool operator==(const EncryptionSettings&, const EncryptionSettings&) = default;
};

// Whether what a device sends can be read on the wire.
enum class OnWire : u8 { kClear, kEncrypted };
[[nodiscard]] OnWire on_wire_from_environment();

// EINVAL: no such word, or something is missing.
[[nodiscard]] Expected<EncryptionSettings> encryption_settings(std::string_view text);
// Returns nullopt if the variable is unset or empty: then nothing is encrypted.
[[nodiscard]] Expected<std::optional<EncryptionSettings>> encryption_settings_from_environment();

}  // namespace verbena::host
