#include "wire/ib/imm_dt.h"

#include "base/bytes.h"

namespace verbena {

std::optional<ImmDt> ImmDt::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  return ImmDt{.value = load_be32(in.data())};
}

void ImmDt::encode(std::span<u8, kSize> out) const { store_be32(out.data(), value); }

std::optional<IETH> IETH::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  return IETH{.r_key = RKey{load_be32(in.data())}};
}

void IETH::encode(std::span<u8, kSize> out) const { store_be32(out.data(), r_key.value); }

}  // namespace verbena
