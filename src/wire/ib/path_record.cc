#include "wire/ib/path_record.h"

#include <algorithm>

#include "base/bytes.h"

namespace verbena {
namespace {

constexpr u8 kExactly = 2 << 6, kCode = 0x3f;

}  // namespace

std::optional<PathRecord> PathRecord::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  PathRecord record;
  std::copy_n(in.begin() + 8, 16, record.dgid.bytes.begin());
  std::copy_n(in.begin() + 24, 16, record.sgid.bytes.begin());
  record.dlid = load_be16(&in[40]);
  record.slid = load_be16(&in[42]);
  record.reversible = in[49] >> 7 != 0;
  record.numb_path = in[49] & 0x7f;
  record.p_key = load_be16(&in[50]);
  record.sl = in[53] & 15;
  record.mtu = in[54] & kCode;
  record.rate = in[55] & kCode;
  record.packet_lifetime = in[56] & kCode;
  return record;
}

void PathRecord::encode(std::span<u8, kSize> out) const {
  std::ranges::fill(out, u8{0});
  std::ranges::copy(dgid.bytes, out.begin() + 8);
  std::ranges::copy(sgid.bytes, out.begin() + 24);
  store_be16(&out[40], dlid);
  store_be16(&out[42], slid);
  out[49] = static_cast<u8>((reversible ? 0x80 : 0) | (numb_path & 0x7f));
  store_be16(&out[50], p_key);
  out[53] = sl & 15;
  out[54] = static_cast<u8>(kExactly | mtu);
  out[55] = static_cast<u8>(kExactly | rate);
  out[56] = static_cast<u8>(kExactly | packet_lifetime);
}

}  // namespace verbena
