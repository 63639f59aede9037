// The parameters of DCQCN, with their names in the paper and in the settings of NVIDIA's adapters
// (ecn/roce_rp/* and ecn/roce_np/*).
//   Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015: 3.1 and table 14
//   IEEE 802.1Qau, 32 (QCN), from which stages and counters come
#pragma once

#include "base/rate.h"

namespace verbena {

// The notification point: the receiver of marked packets.
struct NotificationParameters {
  // The least time between two CNPs of one flow. Paper: N = 50 us; min_time_between_cnps. 0: one
  // CNP for each marked packet. 0 .. 1 s
  Duration cnp_interval = us(50);

  [[nodiscard]] bool valid() const;
};

// The reaction point: the sender. The defaults are the paper's, for 40 Gb/s.
struct DCQCNParameters {
  // The time at which a CNP lowers the rate.
  enum class Decrease : u8 {
    kAtCNP,     // at once: the paper, 3.1, figure 6
    kPeriodic,  // at the end of a decrease interval in which a CNP came: NVIDIA's adapters
  };
  // The new target at a decrease.
  enum class Clamp : u8 {
    kAlways,         // the rate before it: the paper, equation 1; clamp_tgt_rate 1
    kAfterIncrease,  // that, if there was an increase since the last decrease; else it stays
  };

  Rate line_rate = gbps(40);  // flows start with it and never exceed it
  Rate min_rate = mbps(1);    // rpg_min_rate. 1 kb/s .. line_rate

  Decrease decrease = Decrease::kAtCNP;
  Clamp clamp = Clamp::kAlways;
  // kAtCNP: for this long after a decrease, CNPs are ignored. kPeriodic: the period.
  // rate_reduce_monitor_period. 0 (kPeriodic: 1 ns) .. 1 s
  Duration decrease_interval{};
  // kPeriodic: the delay of the periods' begin after the alpha timer's, at the first CNP. 0 .. 1 s
  Duration decrease_offset{};

  double g = 1.0 / 256;              // dce_tcp_g. 1/1024 .. 1
  double initial_alpha = 1;          // at the first CNP; initial_alpha_value. 0 .. 1
  Duration alpha_interval = us(55);  // paper: K; dce_tcp_rtt. 1 ns .. 1 s

  Duration increase_interval = us(55);  // paper: T; rpg_time_reset. 1 ns .. 10 s
  u64 byte_counter = 10'000'000;        // bytes; paper: B; rpg_byte_reset. 0: there is none
  u32 fast_recovery = 5;                // increases without a new target; paper: F; rpg_threshold
  Rate additive_increase = mbps(40);    // R_AI; rpg_ai_rate. 1 Mb/s and more
  Rate hyper_increase = mbps(200);      // R_HAI; rpg_hai_rate. 1 Mb/s and more

  // Returns true if all values are within the ranges above.
  [[nodiscard]] bool valid() const;
};

}  // namespace verbena
