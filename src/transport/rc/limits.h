// RCLimits: how one RC QP sends and recovers, and the limits of its path.
#pragma once

#include <algorithm>

#include "transport/rc/path_allowances.h"
#include "wire/ib/mtu.h"

namespace verbena {

// The packets that a requester repeats after a loss; for both halves.
enum class Retransmission : u8 {
  kGoBackN,          // the lost packet and all after it. IBTA Vol 1, 9.7.5.1.4
  kSelectiveRepeat,  // the lost packet alone, if the peer does the same: reorder_buffer.h,
                     // scoreboard.h
};

struct RCLimits {
  u32 packet_size(MTU path_mtu) const { return packet_bytes != 0 ? packet_bytes : bytes(path_mtu); }

  // Returns the window in packets of that size.
  u32 window(u32 packet_size) const {
    return std::clamp(path.window_bytes / packet_size, kMinWindow,
                      std::max(path.window_packets, kMinWindow));
  }
  // The packets of a READ that are requested at once, so that its responses fit the window.
  static constexpr u32 chunk(u32 window) { return std::max(1u, window / 4); }
  // Returns the most PSNs that may be in flight: the last request in the window may be a READ.
  static constexpr u32 most_psns(u32 window) {
    return std::max(window, kMinWindow) + chunk(std::max(window, kMinWindow));
  }

  static constexpr u32 kMinWindow = 4;  // packets
  PathAllowances path{};
  // Payload bytes of a full packet, at both ends; 0: the path MTU. For simulations of networks
  // whose packets have a size that no path MTU has.
  u32 packet_bytes = 0;
  u32 ack_interval = 32;  // packets between two requests for an ACK in a long run; 1: each asks
  Retransmission retransmission = Retransmission::kGoBackN;
  // kSelectiveRepeat: by how many later packets a packet may be overtaken before it counts as lost.
  u32 reordering_packets = 3;  // as TCP's duplicate ACKs. RFC 5681, 3.2
  u8 max_rd_atomic = 16;       // responder resources kept, at most
};

}  // namespace verbena
