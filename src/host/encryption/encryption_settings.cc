#include "host/encryption/encryption_settings.h"

#include <cerrno>
#include <charconv>
#include <cstdlib>

namespace verbena::host {
namespace {

constexpr std::string_view kWords =
    "psk:FILE, tls:cert=FILE,key=FILE,ca=FILE, cipher=aes-gcm-128|aes-gcm-256, crypt_offset=N, "
    "rotate=SECONDS, rotate_packets=N, port=N";
constexpr u64 kMaxRotationSeconds = 30 * 24 * 3600;
constexpr u64 kMaxRotationPackets = u64{1} << 36;

tl::unexpected<Error> bad_word(std::string_view word, std::string_view why) {
  return failure(EINVAL, std::string(kEncryptionVariable) + ": \"" + std::string(word) + "\" " +
                             std::string(why));
}

std::optional<u64> number_in(std::string_view text, u64 least, u64 most) {
  u64 value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
    return std::nullopt;
  return value;
}

// Returns false if the value is out of its range, or if there is no such word.
bool apply_number(std::string_view name, std::string_view text, EncryptionSettings& out) {
  std::optional<u64> value;
  if (name == "crypt_offset" && (value = number_in(text, 0, PSPHeader::kMaxCryptOffset)))
    out.crypt_offset = static_cast<u8>(*value);
  else if (name == "rotate" && (value = number_in(text, 1, kMaxRotationSeconds)))
    out.rotation = sec(static_cast<i64>(*value));
  else if (name == "rotate_packets" && (value = number_in(text, 1, kMaxRotationPackets)))
    out.rotation_packets = *value;
  else if (name == "port" && (value = number_in(text, 1, 65535)))
    out.port = static_cast<u16>(*value);
  return value.has_value();
}

bool apply_cipher(std::string_view value, EncryptionSettings& out) {
  if (value != "aes-gcm-128" && value != "aes-gcm-256") return false;
  out.version = value == "aes-gcm-128" ? PSPVersion::kAES128GCM : PSPVersion::kAES256GCM;
  return true;
}

bool apply_encryption_word(std::string_view word, EncryptionSettings& out) {
  if (word.starts_with("psk:")) {
    out.psk_file = word.substr(4);
    return !out.psk_file.empty();
  }
  if (word.starts_with("tls:")) word.remove_prefix(4);
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view name = word.substr(0, equals), value = word.substr(equals + 1);
  if (name == "cert") return !(out.certificate_file = value).empty();
  if (name == "key") return !(out.key_file = value).empty();
  if (name == "ca") return !(out.authority_file = value).empty();
  if (name == "cipher") return apply_cipher(value, out);
  return apply_number(name, value, out);
}

}  // namespace

Expected<EncryptionSettings> encryption_settings(std::string_view text) {
  const std::string_view whole = text;
  EncryptionSettings settings;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (!apply_encryption_word(word, settings))
      return bad_word(word, "is none of " + std::string(kWords));
  }
  const bool any_file = !settings.certificate_file.empty() || !settings.key_file.empty() ||
                        !settings.authority_file.empty();
  const bool all_files = !settings.certificate_file.empty() && !settings.key_file.empty() &&
                         !settings.authority_file.empty();
  if (settings.uses_psk() && any_file)
    return bad_word(whole, "asks for a pre-shared key and for certificates; choose one");
  if (!settings.uses_psk() && !all_files)
    return bad_word(whole, "must name psk:FILE, or all of tls:cert=FILE,key=FILE,ca=FILE");
  return settings;
}

OnWire on_wire_from_environment() {
  const char* const text = std::getenv(kEncryptionVariable);
  return text == nullptr || *text == '\0' ? OnWire::kClear : OnWire::kEncrypted;
}

Expected<std::optional<EncryptionSettings>> encryption_settings_from_environment() {
  const char* const text = std::getenv(kEncryptionVariable);
  if (text == nullptr || *text == '\0') return std::nullopt;
  Expected<EncryptionSettings> settings = encryption_settings(text);
  if (!settings) return tl::unexpected(settings.error());
  return *settings;
}

}  // namespace verbena::host
