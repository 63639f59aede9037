// ConstantRate: a flow that sends at line rate, whatever happens. With a window (WindowParameters)
// it is the fixed window scheme: only the data in flight is bounded.
#pragma once

#include "congestion/algorithm.h"

namespace verbena {

struct ConstantRateParameters {
  Rate line_rate = gbps(40);

  [[nodiscard]] bool valid() const {
    return line_rate >= kbps(1) && line_rate != Rate::unlimited();
  }
};

class ConstantRate : public Algorithm {
 public:
  explicit ConstantRate(const ConstantRateParameters& parameters) : rate_(parameters.line_rate) {}
  [[nodiscard]] Rate rate(Time) const { return rate_; }

 private:
  Rate rate_;
};

}  // namespace verbena
