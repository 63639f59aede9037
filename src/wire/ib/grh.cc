#include "wire/ib/grh.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/check.h"

namespace verbena {
namespace {

constexpr u32 kIPVer = 6;
constexpr std::size_t kSGIDAt = 8;
constexpr std::size_t kDGIDAt = 24;

GID gid_at(const u8* p) {
  GID gid;
  std::copy_n(p, gid.bytes.size(), gid.bytes.begin());
  return gid;
}

}  // namespace

std::optional<GRH> GRH::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  const Reader<kSize> r(in.first<kSize>());
  const u32 word = r.get32<0>();
  if (word >> 28 != kIPVer) return std::nullopt;
  return GRH{.traffic_class = static_cast<u8>(word >> 20),
             .flow_label = word & kMaxFlowLabel,
             .payload_length = r.get16<4>(),
             .next_header = r.get8<6>(),
             .hop_limit = r.get8<7>(),
             .sgid = gid_at(in.data() + kSGIDAt),
             .dgid = gid_at(in.data() + kDGIDAt)};
}

void GRH::encode(std::span<u8, kSize> out) const {
  CHECK(flow_label <= kMaxFlowLabel);
  Writer<kSize> w(out);
  w.put32<0>((kIPVer << 28) | (u32{traffic_class} << 20) | flow_label);
  w.put16<4>(payload_length);
  w.put8<6>(next_header);
  w.put8<7>(hop_limit);
  std::ranges::copy(sgid.bytes, out.begin() + kSGIDAt);
  std::ranges::copy(dgid.bytes, out.begin() + kDGIDAt);
}

}  // namespace verbena
