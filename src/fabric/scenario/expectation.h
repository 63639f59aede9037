// Expectation: what a result has to be, as `--expect 'fct.p99 < 2ms'` and `assert:` say it: the
// name of a metric (results/metric.h), a comparison, and a value with its unit.
#pragma once

#include <string>
#include <string_view>

#include "fabric/hpcc_ns3/words.h"

namespace verbena::fabric {

enum class Comparison : u8 { kLess, kAtMost, kGreater, kAtLeast, kEqual, kNotEqual };

struct Expectation {
  std::string text;  // as it was given
  std::string name;
  Comparison comparison = Comparison::kEqual;
  double value = 0;    // in the metric's unit
  std::string word{};  // instead of it
};

[[nodiscard]] Parsed<Expectation> parse_expectation(std::string_view text);

}  // namespace verbena::fabric
