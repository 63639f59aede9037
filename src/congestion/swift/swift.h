// Swift: the window of one flow, computed from the delay of its acknowledgements.
// Kumar et al., Swift: Delay is Simple and Effective for Congestion Control in the Datacenter,
// SIGCOMM 2020, algorithm 1 and 3.5. The window is in packets and may be less than one: then the
// flow is paced, one packet in round trip / window; else nothing but the window bounds it.
//   target = base + flow scaling:  alpha / sqrt(window) + beta, within 0 and flow_scaling_range,
//     alpha = range / (1 / sqrt(fs_min) - 1 / sqrt(fs_max)),  beta = -alpha / sqrt(fs_max)
//   ACK, delay < target    window += ai * acknowledged / window  (below 1: += ai * acknowledged)
//   ACK, else              window *= max(1 - beta_md * (delay - target) / delay, 1 - max_decrease)
//   loss                   window *= 1 - max_decrease
//   timeout                the same; at the third in a row, min_window
// with one decrease in a round trip. The delay is the whole round trip: the time in the end hosts
// is not measured separately, so there is one window, where the paper has two. Topology-based
// scaling is part of `base_target`.
#pragma once

#include "congestion/algorithm.h"

namespace verbena {

struct SwiftParameters {
  Rate line_rate = gbps(100);
  u32 packet_bytes = 4096;               // bytes of a window of 1
  Duration base_target = us(25);         // with the hops' share. 1 ns .. 10 s
  Duration flow_scaling_range = us(50);  // 0: no flow scaling
  double flow_scaling_min_window = 0.1;  // packets
  double flow_scaling_max_window = 100;  // packets; greater than the one above
  double additive_increase = 1;          // ai, packets in a round trip. > 0
  double beta = 0.8;                     // 0 .. 1
  double max_decrease = 0.5;             // max_mdf. 0 .. 1, 1 not included
  double min_window = 0.001;             // packets. > 0
  double max_window = 10'000;            // packets; flows start with it
  u32 timeouts_to_reset = 3;

  [[nodiscard]] bool valid() const;
  // Returns the packets that line_rate carries in the longest target. More would only wait in
  // queues.
  [[nodiscard]] double longest_useful_window() const;
};

class Swift : public Algorithm {
 public:
  static constexpr bool kWantsAcks = true;

  explicit Swift(const SwiftParameters& parameters);
  void on_ack(const AckSignal& ack, Time now);
  void on_nak(Time now) { on_loss(now); }
  void on_timeout(Time now);
  [[nodiscard]] Rate rate(Time now) const;
  [[nodiscard]] u64 window(Time now) const;
  [[nodiscard]] Duration target_delay() const;

 private:
  void on_loss(Time now);
  void decrease(double factor, Time now);
  void set(double window);

  const SwiftParameters& p_;
  double scaling_alpha_, scaling_beta_;  // seconds
  double window_;                        // packets
  Duration rtt_{};                       // the last; 0: none yet
  Time decreased_;
  bool has_decreased_ = false;
  u32 timeouts_ = 0;  // in a row
};

}  // namespace verbena
