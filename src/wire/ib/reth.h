// RETH: RDMA Extended Transport Header, in the first packet of RDMA WRITE and in RDMA READ Request.
// IBTA Vol 1, 9.3.3. Network order.
//   | Virtual Address (64) | R_Key (32) | DMA Length (32) |
#pragma once

#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/types.h"

namespace verbena {

struct RETH {
  static constexpr std::size_t kSize = 16;  // bytes
  u64 virtual_address = 0;
  RKey r_key{};
  u32 dma_length = 0;                                                       // bytes, 0 .. 2^31
  [[nodiscard]] static std::optional<RETH> decode(std::span<const u8> in);  // nullopt: short
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const RETH&, const RETH&) = default;
};

inline std::optional<RETH> RETH::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  const Reader<kSize> r(in.first<kSize>());
  return RETH{
      .virtual_address = r.get64<0>(), .r_key = RKey{r.get32<8>()}, .dma_length = r.get32<12>()};
}

inline void RETH::encode(std::span<u8, kSize> out) const {
  Writer<kSize> w(out);
  w.put64<0>(virtual_address);
  w.put32<8>(r_key.value);
  w.put32<12>(dma_length);
}

}  // namespace verbena
