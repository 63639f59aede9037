// IBCC: InfiniBand's congestion control, the part of the channel adapter that sends. IBTA Vol 1,
// annex A10.2.2 and A10.4.3 (CACongestionSetting, CongestionControlTable). An index into a table of
// delays (CCTI) goes up with every BECN, and down with time:
//   BECN        CCTI = min(CCTI + CCTI_Increase, CCTI_Limit)
//   CCTI_Timer  CCTI = max(CCTI - 1, CCTI_Min), every so many units of 1.024 us
//   rate        line rate / (1 + CCT[CCTI]): the delay after a packet, in times of that packet
// The table here is linear: CCT[i] = i * cct_step. With step 1, n senders to one port share it
// where each has an index of n - 1.
#pragma once

#include "congestion/algorithm.h"

namespace verbena {

struct IBCCParameters {
  static constexpr u32 kMostEntries = 128;  // of the table: two blocks of 64

  Rate line_rate = gbps(100);  // flows start with it and never exceed it
  // Defaults after Gran et al., First Experiences with Congestion Control in InfiniBand Hardware,
  // IPDPS 2010.
  u32 ccti_increase = 1;              // 1 .. 127
  u32 ccti_limit = 127;               // ccti_min .. 127
  u32 ccti_min = 0;                   // 0 .. 127
  Duration ccti_timer = ns(153'600);  // 150 units. 1.024 us .. 1 s
  double cct_step = 1;                // packets' times for each entry. 1/8 .. 64

  [[nodiscard]] bool valid() const;
};

class IBCC : public Algorithm {
 public:
  explicit IBCC(const IBCCParameters& parameters) : p_(parameters), ccti_(p_.ccti_min) {}
  void on_cnp(Time now);  // a BECN
  [[nodiscard]] Rate rate(Time now);

 private:
  void bring_up_to(Time now);

  const IBCCParameters& p_;
  u32 ccti_;
  Time lowered_at_;  // the last decrease of CCTI by the timer, which runs while CCTI is above
                     // CCTI_Min
};

}  // namespace verbena
