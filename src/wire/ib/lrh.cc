#include "wire/ib/lrh.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <array>

#include "base/bytes.h"
#include "base/check.h"
#include "wire/ib/bth.h"

namespace verbena {
namespace {

constexpr u8 kNibble = 0xf;
constexpr u8 kNextHeaderMask = 0x3;
constexpr u8 kMaskedLane = 0xf0;
constexpr std::size_t kFECNAt = 4;  // in BTH: FECN, BECN and 6 reserved bits, masked

}  // namespace

std::optional<LRH> LRH::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  const Reader<kSize> r(in.first<kSize>());
  if ((r.get8<0>() & kNibble) != 0) return std::nullopt;
  return LRH{.virtual_lane = static_cast<u8>(r.get8<0>() >> 4),
             .service_level = static_cast<u8>(r.get8<1>() >> 4),
             .next_header = static_cast<LinkNextHeader>(r.get8<1>() & kNextHeaderMask),
             .dlid = r.get16<2>(),
             .packet_words = static_cast<u16>(r.get16<4>() & kMaxWords),
             .slid = r.get16<6>()};
}

void LRH::encode(std::span<u8, kSize> out) const {
  CHECK(virtual_lane <= kNibble && service_level <= kNibble && packet_words <= kMaxWords);
  Writer<kSize> w(out);
  w.put8<0>(static_cast<u8>(virtual_lane << 4));
  w.put8<1>(static_cast<u8>(service_level << 4 | static_cast<u8>(next_header)));
  w.put16<2>(dlid);
  w.put16<4>(packet_words);
  w.put16<6>(slid);
}

u32 icrc_of_local(const LRH& lrh, std::span<const u8> transport) {
  CHECK(transport.size() >= BTH::kSize);
  std::array<u8, LRH::kSize + BTH::kSize> masked;
  lrh.encode(std::span(masked).first<LRH::kSize>());
  std::ranges::copy(transport.first(BTH::kSize), masked.begin() + LRH::kSize);
  masked[0] |= kMaskedLane;
  masked[LRH::kSize + kFECNAt] = 0xff;
  const u32 crc = crc32_gzip_refl(0, masked.data(), masked.size());
  const std::span<const u8> rest = transport.subspan(BTH::kSize);
  return crc32_gzip_refl(crc, rest.data(), rest.size());
}

}  // namespace verbena
