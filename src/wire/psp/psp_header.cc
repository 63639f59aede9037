#include "wire/psp/psp_header.h"

#include "base/bytes.h"
#include "base/check.h"

namespace verbena {
namespace {

constexpr u8 kSampled = 0x80, kDropAfterSampling = 0x40, kHasCookie = 0x02, kAlwaysOne = 0x01;
constexpr u32 kVersionShift = 2, kVersionMask = 0x0f;
constexpr u8 kReservedOffsetBits = 0xc0;
constexpr u8 kExtensionOfIV = 1, kExtensionWithCookie = 2;  // units of 8 bytes

}  // namespace

std::optional<PSPHeader> PSPHeader::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  const Reader<kSize> r(in.first<kSize>());
  const u8 flags = r.get8<3>(), extension = r.get8<1>(), offset = r.get8<2>();
  const u32 version = (u32{flags} >> kVersionShift) & kVersionMask;
  const bool has_cookie = (flags & kHasCookie) != 0;
  if ((flags & kAlwaysOne) == 0 || version > static_cast<u32>(PSPVersion::kAES256GMAC))
    return std::nullopt;
  if ((offset & kReservedOffsetBits) != 0) return std::nullopt;
  if (extension != (has_cookie ? kExtensionWithCookie : kExtensionOfIV)) return std::nullopt;
  if (has_cookie && in.size() < kSize + kCookieSize) return std::nullopt;
  const std::optional<u64> cookie =
      has_cookie ? std::optional(load_be64(in.data() + kCookieAt)) : std::nullopt;
  return PSPHeader{.next_header = r.get8<0>(),
                   .crypt_offset = offset,
                   .sampled = (flags & kSampled) != 0,
                   .drop_after_sampling = (flags & kDropAfterSampling) != 0,
                   .version = static_cast<PSPVersion>(version),
                   .spi = r.get32<kSPIAt>(),
                   .iv = r.get64<kIVAt>(),
                   .cookie = cookie};
}

void PSPHeader::encode(std::span<u8> out) const {
  CHECK(out.size() == size() && crypt_offset <= kMaxCryptOffset);
  Writer<kSize> w(out.first<kSize>());
  w.put8<0>(next_header);
  w.put8<1>(cookie ? kExtensionWithCookie : kExtensionOfIV);
  w.put8<2>(crypt_offset);
  w.put8<3>(static_cast<u8>(
      (sampled ? kSampled : 0) | (drop_after_sampling ? kDropAfterSampling : 0) |
      (static_cast<u32>(version) << kVersionShift) | (cookie ? kHasCookie : 0) | kAlwaysOne));
  w.put32<kSPIAt>(spi);
  w.put64<kIVAt>(iv);
  if (cookie) store_be64(out.data() + kCookieAt, *cookie);
}

}  // namespace verbena
