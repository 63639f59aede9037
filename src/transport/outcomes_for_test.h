// Outcomes: what completions say, for tests to compare.
#pragma once

#include <utility>
#include <vector>

#include "transport/engine.h"

namespace verbena::test {

using Outcomes = std::vector<std::pair<u64, WQEStatus>>;

inline Outcomes outcomes(const std::vector<CQE>& cqes) {
  Outcomes all;
  for (const CQE& cqe : cqes) all.emplace_back(cqe.wr_id, cqe.status);
  return all;
}

}  // namespace verbena::test
