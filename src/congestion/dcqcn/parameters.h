// The parameters of DCQCN, with their names in the paper and in the settings of NVIDIA's adapters
// (ecn/roce_rp/* and ecn/roce_np/*).
//   Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015: 3.1 and table 14
//   IEEE 802.1Qau, 32 (QCN), from which stages and counters come
#pragma once

#include "base/rate.h"

namespace verbena {

// The notification point: who gets marked packets.
struct NotificationParameters {
  // Between two CNPs of one flow, at least. Paper: N = 50 us; min_time_between_cnps. 0: one for
  // each marked packet. 0 .. 1 s
  Duration cnp_interval = us(50);

  [[nodiscard]] bool valid() const;
};

// The reaction point: who sends. The defaults are the paper's, for 40 Gb/s.
struct DCQCNParameters {
  // When a CNP lowers the rate.
  enum class Decrease : u8 {
    kAtCNP,     // at once: the paper, 3.1, figure 6
    kPeriodic,  // at the end of a decrease interval in which a CNP came: NVIDIA's adapters
  };
  // What the target becomes at a decrease.
  enum class Clamp : u8 {
    kAlways,         // the rate before it: the paper, equation 1; clamp_tgt_rate 1
    kAfterIncrease,  // that, if there was an increase since the last decrease; else it stays
  };

  Rate line_rate = gbps(40);  // flows start with it and never exceed it
  Rate min_rate = mbps(1);    // rpg_min_rate. 1 kb/s .. line_rate

  Decrease decrease = Decrease::kAtCNP;
  Clamp clamp = Clamp::kAlways;
  // kAtCNP: sooner after a decrease, CNPs are not looked at. kPeriodic: the period.
  // rate_reduce_monitor_period. 0 (kPeriodic: 1 ns) .. 1 s
  Duration decrease_interval{};
  // kPeriodic: how much later than the alpha timer the periods begin, at the first CNP. 0 .. 1 s
  Duration decrease_offset{};

  double g = 1.0 / 256;              // dce_tcp_g. 1/1024 .. 1
  double initial_alpha = 1;          // at the first CNP; initial_alpha_value. 0 .. 1
  Duration alpha_interval = us(55);  // paper: K; dce_tcp_rtt. 1 ns .. 1 s

  Duration increase_interval = us(55);  // paper: T; rpg_time_reset. 1 ns .. 10 s
  u64 byte_counter = 10'000'000;        // octets; paper: B; rpg_byte_reset. 0: there is none
  u32 fast_recovery = 5;                // increases without a new target; paper: F; rpg_threshold
  Rate additive_increase = mbps(40);    // R_AI; rpg_ai_rate. 1 Mb/s and more
  Rate hyper_increase = mbps(200);      // R_HAI; rpg_hai_rate. 1 Mb/s and more

  // All within the ranges above.
  [[nodiscard]] bool valid() const;
};

}  // namespace verbena
