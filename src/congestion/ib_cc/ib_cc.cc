#include "congestion/ib_cc/ib_cc.h"

#include <algorithm>

namespace verbena {

bool IBCCParameters::valid() const {
  return line_rate >= kbps(1) && line_rate != Rate::unlimited() && ccti_increase >= 1 &&
         ccti_increase < kMostEntries && ccti_limit < kMostEntries && ccti_min <= ccti_limit &&
         ccti_timer >= ns(1024) && ccti_timer <= sec(1) && cct_step >= 0.125 && cct_step <= 64;
}

void IBCC::on_cnp(Time now) {
  bring_up_to(now);
  if (ccti_ == p_.ccti_min) lowered_at_ = now;
  ccti_ = std::min(ccti_ + p_.ccti_increase, p_.ccti_limit);
}

Rate IBCC::rate(Time now) {
  bring_up_to(now);
  const double delay = p_.cct_step * ccti_;
  return Rate::from_bps(static_cast<u64>(static_cast<double>(p_.line_rate.bps()) / (1 + delay)));
}

void IBCC::bring_up_to(Time now) {
  const i64 expired = (now - lowered_at_).ps() / p_.ccti_timer.ps();
  if (expired == 0) return;
  ccti_ -= static_cast<u32>(std::min<i64>(expired, ccti_ - p_.ccti_min));
  lowered_at_ = lowered_at_ + p_.ccti_timer * expired;
}

}  // namespace verbena
