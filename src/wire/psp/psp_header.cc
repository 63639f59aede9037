#include "wire/psp/psp_header.h"

#include "base/bytes.h"
#include "base/check.h"

namespace verbena {
namespace {

constexpr u8 kSampled = 0x80, kDropAfterSampling = 0x40, kHasCookie = 0x02, kAlwaysOne = 0x01;
constexpr u32 kVersionShift = 2, kVersionMask = 0x0f;
constexpr u8 kReservedOffsetBits = 0xc0;
constexpr u8 kExtensionOfIV = 1, kExtensionWithCookie = 2;  // units of 8 bytes
constexpr u32 kCookieSize = 8;

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
  const u32 extra = has_cookie ? kCookieSize : 0;
  if (in.size() < kSize + extra) return std::nullopt;
  return PSPHeader{.next_header = r.get8<0>(),
                   .extension_bytes = static_cast<u8>(extra),
                   .crypt_offset = offset,
                   .sampled = (flags & kSampled) != 0,
                   .drop_after_sampling = (flags & kDropAfterSampling) != 0,
                   .version = static_cast<PSPVersion>(version),
                   .has_cookie = has_cookie,
                   .spi = r.get32<kSPIAt>(),
                   .iv = r.get64<kIVAt>()};
}

void PSPHeader::encode(std::span<u8, kSize> out) const {
  CHECK(extension_bytes == 0 && !has_cookie && crypt_offset <= kMaxCryptOffset);
  Writer<kSize> w(out);
  w.put8<0>(next_header);
  w.put8<1>(kExtensionOfIV);
  w.put8<2>(crypt_offset);
  w.put8<3>(static_cast<u8>((sampled ? kSampled : 0) |
                            (drop_after_sampling ? kDropAfterSampling : 0) |
                            (static_cast<u32>(version) << kVersionShift) | kAlwaysOne));
  w.put32<kSPIAt>(spi);
  w.put64<kIVAt>(iv);
}

}  // namespace verbena
