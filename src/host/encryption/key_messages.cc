#include "host/encryption/key_messages.h"

#include <algorithm>

namespace verbena::host {
namespace {

constexpr u32 kQuestionMagic = 0x56505350, kAnswerMagic = 0x5650534b;
constexpr u8 kProtocolVersion = 1;
constexpr u8 kGranted = 0, kRefused = 1;
constexpr u16 kSlots = 1024;
constexpr i64 kMaxSeconds = 60 * 24 * 3600;  // two rotations
constexpr std::size_t kKeyAt = 20;

u32 seconds_of(Duration d) { return static_cast<u32>(std::max<i64>(d.ns() / 1'000'000'000, 0)); }

}  // namespace

std::optional<KeyQuestion> KeyQuestion::decode(std::span<const u8, kSize> in) {
  const Reader<kSize> r(in);
  const KeyQuestion question{.version = static_cast<PSPVersion>(r.get8<5>()), .slot = r.get16<6>()};
  if (r.get32<0>() != kQuestionMagic || r.get8<4>() != kProtocolVersion) return std::nullopt;
  if (!is_encrypted(question.version) || question.slot >= kSlots) return std::nullopt;
  return question;
}

void KeyQuestion::encode(std::span<u8, kSize> out) const {
  std::ranges::fill(out, u8{0});
  Writer<kSize> w(out);
  w.put32<0>(kQuestionMagic);
  w.put8<4>(kProtocolVersion);
  w.put8<5>(static_cast<u8>(version));
  w.put16<6>(slot);
}

std::optional<IssuedAssociation> KeyAnswer::decode(std::span<const u8, kSize> in) {
  const Reader<kSize> r(in);
  IssuedAssociation issued{.spi = r.get32<8>(),
                           .key = {.version = static_cast<PSPVersion>(r.get8<5>())},
                           .renew_after = sec(std::min<i64>(r.get32<12>(), kMaxSeconds)),
                           .expires_after = sec(std::min<i64>(r.get32<16>(), kMaxSeconds))};
  if (r.get32<0>() != kAnswerMagic || r.get8<4>() != kGranted) return std::nullopt;
  if (!is_encrypted(issued.key.version) || issued.spi == 0) return std::nullopt;
  std::ranges::copy(in.subspan<kKeyAt>().first(issued.key.size()), issued.key.bytes.begin());
  return issued;
}

void KeyAnswer::encode(const IssuedAssociation& issued, std::span<u8, kSize> out) {
  std::ranges::fill(out, u8{0});
  Writer<kSize> w(out);
  w.put32<0>(kAnswerMagic);
  w.put8<4>(kGranted);
  w.put8<5>(static_cast<u8>(issued.key.version));
  w.put32<8>(issued.spi);
  w.put32<12>(seconds_of(issued.renew_after));
  w.put32<16>(seconds_of(issued.expires_after));
  std::ranges::copy(issued.key.used(), out.begin() + kKeyAt);
}

void KeyAnswer::encode_refusal(std::span<u8, kSize> out) {
  std::ranges::fill(out, u8{0});
  Writer<kSize> w(out);
  w.put32<0>(kAnswerMagic);
  w.put8<4>(kRefused);
}

}  // namespace verbena::host
