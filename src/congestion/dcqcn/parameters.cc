#include "congestion/dcqcn/parameters.h"

namespace verbena {
namespace {

constexpr bool within(Duration value, Duration least, Duration most) {
  return value >= least && value <= most;
}

}  // namespace

bool NotificationParameters::valid() const { return within(cnp_interval, ns(0), sec(1)); }

bool DCQCNParameters::valid() const {
  const Duration shortest_period = decrease == Decrease::kPeriodic ? ns(1) : ns(0);
  return min_rate >= kbps(1) && min_rate <= line_rate && line_rate != Rate::unlimited() &&
         within(decrease_interval, shortest_period, sec(1)) &&
         within(decrease_offset, ns(0), sec(1)) && g >= 1.0 / 1024 && g <= 1 &&
         initial_alpha >= 0 && initial_alpha <= 1 && within(alpha_interval, ns(1), sec(1)) &&
         within(increase_interval, ns(1), sec(10)) && additive_increase >= mbps(1) &&
         hyper_increase >= mbps(1);
}

}  // namespace verbena
