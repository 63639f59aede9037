// Metric: one number of a result under a name for programs: seconds, bytes, bits a second, parts
// of 1, or a count. NaN: the result has none. Names are those of `--expect`, `assert` and `--json`.
#pragma once

#include <limits>
#include <span>
#include <string>
#include <vector>

#include "fabric/results/summary.h"

namespace verbena::fabric {

struct Metric {
  std::string name;  // "fct.p99"
  double value = std::numeric_limits<double>::quiet_NaN();
  std::string word{};  // instead of a number: "complete"
};

// The same names, in the same order, whatever the result.
[[nodiscard]] std::vector<Metric> metrics_of(const Summary& summary);
// drops, drops.overflow, drops.no_route, drops.dead_link, drops.corrupted, marks, pauses
[[nodiscard]] std::vector<Metric> metrics_of(const Counters& counters);

// Returns "" if the expectation is met, else a text such as "drops == 0: it is 525".
[[nodiscard]] std::string unmet(const Expectation& expectation, std::span<const Metric> metrics);
// Returns "" if the metrics have all names, else the names that are missing and those that exist.
[[nodiscard]] std::string unknown_names(std::span<const Expectation> expectations,
                                        std::span<const Metric> metrics);

}  // namespace verbena::fabric
