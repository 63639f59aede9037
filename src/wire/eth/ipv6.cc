#include "wire/eth/ipv6.h"

#include "base/check.h"
#include "wire/ib/grh.h"

namespace verbena {
// The layout is that of the GRH, which IBTA took from IPv6.
std::optional<IPv6Header> IPv6Header::decode(std::span<const u8> in) {
  const std::optional<GRH> grh = GRH::decode(in);
  if (!grh) return std::nullopt;
  return IPv6Header{.dscp = dscp_of(grh->traffic_class),
                    .ecn = ecn_of(grh->traffic_class),
                    .flow_label = grh->flow_label,
                    .payload_length = grh->payload_length,
                    .next_header = grh->next_header,
                    .hop_limit = grh->hop_limit,
                    .source = grh->sgid,
                    .destination = grh->dgid};
}

void IPv6Header::encode(std::span<u8, kSize> out) const {
  static_assert(kSize == GRH::kSize);
  CHECK(dscp <= kMaxDSCP);
  const GRH grh{.traffic_class = traffic_class_of(dscp, ecn),
                .flow_label = flow_label,
                .payload_length = payload_length,
                .next_header = next_header,
                .hop_limit = hop_limit,
                .sgid = source,
                .dgid = destination};
  grh.encode(out);
}

}  // namespace verbena
