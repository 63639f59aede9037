// LRH: Local Route Header, the first of every packet on an InfiniBand link. IBTA Vol 1, 7.7.
// Network order.
//    0        4        8       12  14  16                              31
//   |   VL   |  LVer  |   SL   |rsv|LNH|             DLID              |
//   |  rsvd (5)  |      PktLen (11)    |             SLID              |
// Followed by GRH or BTH, ..., ICRC; then the VCRC, two bytes that every link computes anew.
// Invariant: decode(encode(h)) == h for valid h. Reserved bits: sent as 0, ignored on receipt.
#pragma once

#include <optional>
#include <span>

#include "base/types.h"

namespace verbena {

inline constexpr std::size_t kVCRCSize = 2;  // bytes. IBTA 7.8.2

// The next header. IBTA 7.7.4.
enum class LinkNextHeader : u8 {
  kRaw = 0,
  kIPv6 = 1,  // raw, too
  kBTH = 2,   // within a subnet
  kGRH = 3,
};

struct LRH {
  static constexpr std::size_t kSize = 8;  // bytes
  static constexpr u16 kMaxWords = 0x7ff;
  u8 virtual_lane = 0;   // 4 bits; 15: management
  u8 service_level = 0;  // 4 bits
  LinkNextHeader next_header = LinkNextHeader::kBTH;
  u16 dlid = 0;
  u16 packet_words = 0;  // PktLen: of 4 bytes, LRH to ICRC; 11 bits
  u16 slid = 0;
  // Returns nullopt on a short buffer or LVer != 0.
  [[nodiscard]] static std::optional<LRH> decode(std::span<const u8> in);
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const LRH&, const LRH&) = default;
};

// Returns the ICRC of a packet without GRH, to be stored as store_icrc() does; `transport`: BTH to
// the end of pad. The lane is masked, because it may change on the path. IBTA 7.8.1.
[[nodiscard]] u32 icrc_of_local(const LRH& lrh, std::span<const u8> transport);

}  // namespace verbena
