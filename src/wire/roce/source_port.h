// The UDP source port of a RoCEv2 flow: entropy for ECMP, the same for all packets of a QP, so that
// they stay in order. Annex A17 leaves the choice open; Linux and cards use 0xc000..0xffff and the
// two mappings below, and a tool that predicts paths (ibv_flow_label_to_udp_sport) expects them.
#pragma once

#include "base/types.h"

namespace verbena {

inline constexpr u16 kFirstSourcePort = 0xc000;  // 49152, the first dynamic port. RFC 6335, 6
inline constexpr u32 kFlowLabelMask = 0xfffff;   // 20 bits

// Folds the upper 6 bits of the label onto the lower 14.
constexpr u16 source_port_of_flow_label(u32 flow_label) {
  const u32 label = flow_label & kFlowLabelMask;
  return static_cast<u16>(kFirstSourcePort | ((label ^ (label >> 14)) & 0x3fff));
}

// Returns a label for a QP pair for which the user gave none: the product's 48 bits folded onto 20.
constexpr u32 flow_label_of(QPN local, QPN remote) {
  u64 mix = u64{local.value} * remote.value;
  mix ^= mix >> 20;
  mix ^= mix >> 40;
  return static_cast<u32>(mix & kFlowLabelMask);
}

constexpr u16 source_port_of(QPN local, QPN remote) {
  return source_port_of_flow_label(flow_label_of(local, remote));
}

}  // namespace verbena
