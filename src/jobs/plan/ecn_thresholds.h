// ECN thresholds for DCQCN: the queue lengths from which switches mark packets.
//   k_min, k_max   100 KB and 400 KB for each 25 Gb/s, p_max 20 %: Y. Li et al., "HPCC: High
//                  Precision Congestion Control", SIGCOMM 2019, 5.1 and its simulator's settings
//   bound          marks come before pauses, even if every port is congested: k_min is below
//                  beta (B - 8 n h) / (8 n (beta + 1)), for a buffer of B bytes, n ports, a
//                  headroom of h for each of 8 priorities: Y. Zhu et al., "Congestion Control for
//                  Large-Scale RDMA Deployments", SIGCOMM 2015, 4
#pragma once

#include "base/rate.h"

namespace verbena::jobs {

struct ECNThresholds {
  u64 k_min = 0, k_max = 0;  // bytes
  double p_max = 0.2;
};

[[nodiscard]] ECNThresholds ecn_thresholds(Rate rate);

struct SharedBufferShape {
  u64 bytes = 0;                // B
  u32 ports = 0;                // n
  u64 headroom = 0;             // h
  u32 lossless_priorities = 8;  // that have headroom
  double beta = 8;              // a priority may have so many times what is free
};

// Returns 0 if the headroom alone fills the buffer.
[[nodiscard]] u64 marks_before_pauses(const SharedBufferShape& shape);

}  // namespace verbena::jobs
