#include "wire/ib/sack_eth.h"

#include "base/bytes.h"
#include "base/check.h"

namespace verbena {

std::optional<SackETH> SackETH::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  const Reader<kSize> r(in.first<kSize>());
  const PSN first(r.get24<1>());
  if (first.value() % kPSNs != 0) return std::nullopt;
  return SackETH{.first = first, .bits = r.get64<4>()};
}

void SackETH::encode(std::span<u8, kSize> out) const {
  CHECK(first.value() % kPSNs == 0);
  Writer<kSize> w(out);
  w.put8<0>(0);
  w.put24<1>(first.value());
  w.put64<4>(bits);
}

}  // namespace verbena
