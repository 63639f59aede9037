// SimOutcome: how a run, a sweep or a comparison of `verbena sim` has ended.
#pragma once

#include <string>
#include <vector>

namespace verbena::cli {

struct SimOutcome {
  std::string output;                // what to print
  bool was_interrupted = false;      // by SIGINT or SIGTERM: the results are partial
  std::vector<std::string> unmet{};  // expectations, and what there is instead
};

}  // namespace verbena::cli
