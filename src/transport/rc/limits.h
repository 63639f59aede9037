// RCLimits: how one RC QP sends and recovers, and what its path can hold.
#pragma once

#include <algorithm>

#include "transport/rc/path_allowances.h"
#include "wire/ib/mtu.h"

namespace verbena {

// What a lost packet costs, at both halves.
enum class Retransmission : u8 {
  kGoBackN,          // what was sent after it too. IBTA Vol 1, 9.7.5.1.4
  kSelectiveRepeat,  // itself alone, where the peer does the same: reorder_buffer.h, scoreboard.h
};

struct RCLimits {
  u32 packet_size(MTU path_mtu) const {
    return packet_octets != 0 ? packet_octets : bytes(path_mtu);
  }

  // The window, in packets of that size.
  u32 window(u32 packet_size) const {
    return std::clamp(path.window_bytes / packet_size, kMinWindow,
                      std::max(path.window_packets, kMinWindow));
  }
  // Of a READ that is asked for at once, so that its responses fit the window.
  static constexpr u32 chunk(u32 window) { return std::max(1u, window / 4); }
  // The PSNs of what may be in flight: the last of it may be a READ.
  static constexpr u32 most_psns(u32 window) {
    return std::max(window, kMinWindow) + chunk(std::max(window, kMinWindow));
  }

  static constexpr u32 kMinWindow = 4;  // packets
  PathAllowances path{};
  // Octets of payload in a full packet, at both ends; 0: the path MTU. For simulations of networks
  // whose packets have a size that no path MTU has.
  u32 packet_octets = 0;
  u32 ack_interval = 32;  // packets between two requests for an ACK in a long run; 1: each asks
  Retransmission retransmission = Retransmission::kGoBackN;
  // kSelectiveRepeat: by how many later packets one may be overtaken that is not lost.
  u32 reordering_packets = 3;  // as TCP's duplicate ACKs. RFC 5681, 3.2
  u8 max_rd_atomic = 16;       // responder resources kept, at most
};

}  // namespace verbena
