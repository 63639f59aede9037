// The seeds that a simulation test runs: 1 .. VERBENA_SIM_SEEDS. SIM_SEEDS=N runs N instead, and
// SIM_SEED=n only that one.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/types.h"

namespace verbena::sim {

// `share`: one in so many of the usual number, for a test that takes longer.
inline std::vector<u64> seeds(u64 share = 1) {
  if (const char* one = std::getenv("SIM_SEED")) return {std::strtoull(one, nullptr, 0)};
  u64 count = VERBENA_SIM_SEEDS;
  if (const char* some = std::getenv("SIM_SEEDS")) count = std::strtoull(some, nullptr, 0);
  std::vector<u64> all;
  for (u64 seed = 1; seed <= (count + share - 1) / share; ++seed) all.push_back(seed);
  return all;
}

inline std::string seed_name(const ::testing::TestParamInfo<u64>& info) {
  return std::to_string(info.param);
}

}  // namespace verbena::sim
