// PathAllowances: what a device does because its packets go through sockets and its peers are
// processes: windows that fit receive buffers, a window that halves at a loss, probes long before
// the Local ACK Timeout, floors for peers that a scheduler has suspended. A NIC on a network has
// none of that, and the defaults are a NIC's: simulated hosts use them. The values for sockets are
// in host/live_adapter_open.cc; docs/simulator.md compares both.
#pragma once

#include <optional>

#include "base/psn.h"
#include "base/time.h"

namespace verbena {

// What a lost packet does to the window, besides what congestion control does.
enum class LossResponse : u8 {
  kNone,
  kHalveWindow,  // loss_window.h
};

struct PathAllowances {
  // No limit in practice. With a READ request of a quarter of it (RCLimits::chunk()) all PSNs in
  // flight still compare: less than half of them. IBTA Vol 1, 9.7.3.1
  static constexpr u32 kNoWindow = PSN::kHalf / 2;
  static constexpr u32 kNoSharedWindow = ~u32{0};

  // Of one QP: PSNs that are sent and not acknowledged, READ responses included; and their octets.
  u32 window_packets = kNoWindow;
  u32 window_bytes = ~u32{0};
  LossResponse loss_response = LossResponse::kNone;
  // Packets of all QPs together, but for a few of each. shared_window.h
  u32 shared_window_packets = kNoSharedWindow;
  // The floor under the time until a requester probes. nullopt: no probes. probe_timer.h
  std::optional<Duration> min_probe_timeout{};
  // The floor under the Local ACK Timeout.
  Duration min_ack_timeout{};
  // A requester asks for an ACK at least so often. With probes: twice in their floor.
  Duration ack_request_period = ms(1);
};

}  // namespace verbena
