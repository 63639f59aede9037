#include "transport/iwarp/far_payload.h"

#include <algorithm>

namespace verbena::iwarp {
namespace {

constexpr u32 kAnyLength = ~u32{0};

}  // namespace

u32 max_segment_of(const ProtectionTable& memory, const Resolved& place) {
  if (memory.far().all().empty() || !place) return kAnyLength;
  return is_here(place.data) ? kAnyLength : kCopySlotBytes;
}

u32 max_segment_of(const ProtectionTable& memory, PDId pd, std::span<const SGE> list) {
  if (memory.far().all().empty()) return kAnyLength;
  u32 longest = kAnyLength;
  for (const SGE& sge : list)
    longest =
        std::min(longest, max_segment_of(memory, memory.local(pd, sge.l_key, sge.address,
                                                              sge.length, Access::kLocalRead)));
  return longest;
}

}  // namespace verbena::iwarp
