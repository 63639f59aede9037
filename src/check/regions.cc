#include "check/regions.h"

namespace verbena::check {

std::optional<std::vector<Bytes>> Regions::resolve(DeviceId device,
                                                   std::span<const SGE> list) const {
  std::vector<Bytes> pieces;
  for (const SGE& sge : list) {
    if (sge.length == 0) continue;
    const Region* const region = find(device, sge.l_key);
    if (region == nullptr || !region->is_memory) return std::nullopt;
    const u64 offset = sge.address - region->iova;
    if (!region->whole_process && (offset > region->length || sge.length > region->length - offset))
      return std::nullopt;
    pieces.emplace_back(region->memory + offset, sge.length);
  }
  return pieces;
}

}  // namespace verbena::check
