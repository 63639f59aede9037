#include "wire/iwarp/ddp.h"

#include "base/bytes.h"

namespace verbena::iwarp {
namespace {

constexpr u8 kTagged = 0x80, kLast = 0x40, kVersionBits = 0x03;

u8 first_byte(u8 tagged, bool last) {
  return static_cast<u8>(tagged | (last ? kLast : 0) | kDDPVersion);
}

bool begins(std::span<const u8> in, u8 tagged) {
  return (in[0] & kTagged) == tagged && (in[0] & kVersionBits) == kDDPVersion;
}

}  // namespace

std::optional<DDPTagged> DDPTagged::decode(std::span<const u8> in) {
  if (in.size() < kSize || !begins(in, kTagged)) return std::nullopt;
  const Reader<kSize> r(in.first<kSize>());
  return DDPTagged{.last = (r.get8<0>() & kLast) != 0,
                   .control = r.get8<1>(),
                   .stag = r.get32<2>(),
                   .offset = r.get64<6>()};
}

void DDPTagged::encode(std::span<u8, kSize> out) const {
  Writer<kSize> w(out);
  w.put8<0>(first_byte(kTagged, last));
  w.put8<1>(control);
  w.put32<2>(stag);
  w.put64<6>(offset);
}

std::optional<DDPUntagged> DDPUntagged::decode(std::span<const u8> in) {
  if (in.size() < kSize || !begins(in, 0)) return std::nullopt;
  const Reader<kSize> r(in.first<kSize>());
  return DDPUntagged{.last = (r.get8<0>() & kLast) != 0,
                     .control = r.get8<1>(),
                     .invalidate_stag = r.get32<2>(),
                     .queue = r.get32<6>(),
                     .message = r.get32<10>(),
                     .offset = r.get32<14>()};
}

void DDPUntagged::encode(std::span<u8, kSize> out) const {
  Writer<kSize> w(out);
  w.put8<0>(first_byte(0, last));
  w.put8<1>(control);
  w.put32<2>(invalidate_stag);
  w.put32<6>(queue);
  w.put32<10>(message);
  w.put32<14>(offset);
}

}  // namespace verbena::iwarp
