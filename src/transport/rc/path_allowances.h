// PathAllowances: the adjustments that a device needs because its packets pass through sockets and
// its peers are processes: windows that fit receive buffers, a window that halves at a loss, probes
// long before the Local ACK Timeout, minimum timeouts for peers that a scheduler has suspended. A
// NIC on a network needs none of these, and the defaults are a NIC's: simulated hosts use them. The
// values for sockets are in host/live_adapter_open.cc; docs/simulator.md compares both.
#pragma once

#include <optional>

#include "base/psn.h"
#include "base/time.h"

namespace verbena {

// The effect of a lost packet on the window, besides that of congestion control.
enum class LossResponse : u8 {
  kNone,
  kHalveWindow,  // loss_window.h
};

struct PathAllowances {
  // No limit in practice. Even with READ requests of a quarter of it (RCLimits::chunk()), all PSNs
  // in flight can be compared: they are less than half of all PSNs. IBTA Vol 1, 9.7.3.1
  static constexpr u32 kNoWindow = PSN::kHalf / 2;
  static constexpr u32 kNoSharedWindow = ~u32{0};

  // Limits of one QP: PSNs that are sent and not acknowledged, READ responses included; and their
  // bytes.
  u32 window_packets = kNoWindow;
  u32 window_bytes = ~u32{0};
  LossResponse loss_response = LossResponse::kNone;
  // Limit of the packets of all QPs together, except a few of each. shared_window.h
  u32 shared_window_packets = kNoSharedWindow;
  // The minimum time until a requester probes; nullopt for no probes. probe_timer.h
  std::optional<Duration> min_probe_timeout{};
  // The minimum of the Local ACK Timeout.
  Duration min_ack_timeout{};
  // The longest time between two requests for an ACK. With probes: half of the minimum probe
  // timeout.
  Duration ack_request_period = ms(1);
};

}  // namespace verbena
