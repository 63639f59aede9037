#include "wire/roce/v1_packet.h"

#include "wire/roce/icrc.h"

namespace verbena {

std::optional<RoCEv1View> RoCEv1View::decode(std::span<const u8> in) {
  const std::optional<GRH> grh = GRH::decode(in);
  if (!grh || grh->next_header != kNextHeaderIBA) return std::nullopt;
  if (grh->sgid.is_ipv4() != grh->dgid.is_ipv4()) return std::nullopt;
  const std::size_t size = grh->payload_length;
  if (size < kICRCSize || in.size() - GRH::kSize < size) return std::nullopt;
  const std::span<const u8> payload = in.subspan(GRH::kSize, size);
  return RoCEv1View{.grh = *grh,
                    .transport = payload.first(size - kICRCSize),
                    .icrc = load_icrc(payload.last<kICRCSize>())};
}

}  // namespace verbena
