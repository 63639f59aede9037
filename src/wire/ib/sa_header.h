// SAHeader: what stands before the record of a MAD of subnet administration that is one packet.
// IBTA Vol 1, 15.2.1.1. Offsets in the MAD: RMPP header 24, SM_Key 36, AttributeOffset 44,
// ComponentMask 48, the record 56.
#pragma once

#include "base/bytes.h"
#include "wire/ib/mad.h"

namespace verbena {

inline constexpr std::size_t kSARecordAt = 56;
inline constexpr std::size_t kSARecordSize = kMADSize - kSARecordAt;
inline constexpr u8 kSAClassVersion = 2;

enum class SAAttribute : u16 { kPathRecord = 0x0035, kMCMemberRecord = 0x0038 };  // 15.2.5
inline constexpr MADMethod kSADelete{0x15};

// A request for records whose components are those of the mask.
struct SARequest {
  MADMethod method{};
  SAAttribute attribute{};
  u64 component_mask = 0;
  std::array<u8, kSARecordSize> record{};

  void encode(std::span<u8, kMADSize> out) const {
    std::ranges::fill(out, u8{0});
    const MADHeader header{.mgmt_class = MgmtClass::kSubnAdm,
                           .class_version = kSAClassVersion,
                           .method = method,
                           .transaction_id = 1,
                           .attribute_id = static_cast<u16>(attribute)};
    header.encode(out.first<MADHeader::kSize>());
    out[24] = 1;  // RMPPVersion; not active
    store_be64(&out[48], component_mask);
    std::ranges::copy(record, out.begin() + kSARecordAt);
  }
};

}  // namespace verbena
