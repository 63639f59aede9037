#include "check/regions.h"

namespace verbena::check {

std::optional<Bytes> Regions::resolve(DeviceId device, const SGE& sge) const {
  if (sge.length == 0) return Bytes{};
  const Region* const region = find(device, sge.l_key);
  if (region == nullptr || !region->is_memory) return std::nullopt;
  const u64 offset = sge.address - region->iova;
  const bool is_inside = offset <= region->length && sge.length <= region->length - offset;
  if (!is_inside && !region->whole_process) return std::nullopt;
  return Bytes{region->memory + offset, sge.length};
}

std::optional<std::vector<Bytes>> Regions::resolve(DeviceId device,
                                                   std::span<const SGE> list) const {
  std::vector<Bytes> pieces;
  for (const SGE& sge : list) {
    const std::optional<Bytes> piece = resolve(device, sge);
    if (!piece) return std::nullopt;
    if (!piece->empty()) pieces.push_back(*piece);
  }
  return pieces;
}

}  // namespace verbena::check
