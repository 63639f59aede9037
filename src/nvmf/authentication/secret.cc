#include "nvmf/authentication/secret.h"

#include "wire/roce/crc32_field.h"

namespace verbena::nvmf {
namespace {

constexpr std::size_t kCRCBytes = 4;

// RFC 4648, section 4, with padding. nullopt: other characters, or a wrong length.
std::optional<std::vector<u8>> decode_base64(std::string_view text) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (text.size() % 4 != 0) return std::nullopt;
  for (int i = 0; i < 2 && text.ends_with('='); ++i) text.remove_suffix(1);
  std::vector<u8> out;
  u32 bits = 0, count = 0;
  for (const char c : text) {
    const std::size_t value = kAlphabet.find(c);
    if (value == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | static_cast<u32>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out.push_back(static_cast<u8>(bits >> count));
  }
  return out;
}

u32 crc32_of(Bytes bytes) {
  u32 crc = ~0u;
  for (const u8 byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc32_field::times_x(crc);
  }
  return ~crc;
}

}  // namespace

std::optional<AuthSecret> AuthSecret::parse(std::string_view text) {
  constexpr std::string_view kPrefix = "DHHC-1:";
  constexpr std::size_t kKeyAt = kPrefix.size() + 3;  // after "HH:"
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
    text.remove_suffix(1);
  if (!text.starts_with(kPrefix) || text.size() <= kKeyAt || !text.ends_with(':'))
    return std::nullopt;
  const std::string_view digits = text.substr(kPrefix.size(), 3);
  if (digits[0] != '0' || digits[1] < '0' || digits[1] > '3' || digits[2] != ':')
    return std::nullopt;
  const auto bytes = decode_base64(text.substr(kKeyAt, text.size() - kKeyAt - 1));
  if (!bytes || bytes->size() < kCRCBytes) return std::nullopt;
  const Bytes key = Bytes(*bytes).first(bytes->size() - kCRCBytes);
  if (key.size() != 32 && key.size() != 48 && key.size() != 64) return std::nullopt;
  if (load_le<u32>(bytes->data() + key.size()) != crc32_of(key)) return std::nullopt;
  AuthSecret secret{.key = {key.begin(), key.end()}};
  if (digits[1] != '0') secret.transform = static_cast<nvme::AuthHash>(digits[1] - '0');
  return secret;
}

std::vector<u8> AuthSecret::transformed(const Cryptography& cryptography,
                                        std::string_view nqn) const {
  if (!transform) return key;
  constexpr std::string_view kSuffix = "NVMe-over-Fabrics";
  std::vector<u8> text(nqn.begin(), nqn.end());
  text.insert(text.end(), kSuffix.begin(), kSuffix.end());
  return cryptography.hmac(*transform, key, text);
}

}  // namespace verbena::nvmf
