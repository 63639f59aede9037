#include "perf/options.h"

#include <gtest/gtest.h>

namespace verbena::perf {
namespace {

// nccl-tests, doc/PERFORMANCE.md: bus bandwidth is algorithm bandwidth times this.
TEST(BusFactor, IsThatOfNCCLTests) {
  EXPECT_DOUBLE_EQ(bus_factor(perf::Test::kAllReduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(bus_factor(perf::Test::kAllGather, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(perf::Test::kReduceScatter, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(perf::Test::kAllToAll, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(perf::Test::kBroadcast, 4), 1);
  EXPECT_DOUBLE_EQ(bus_factor(perf::Test::kReduce, 4), 1);
  EXPECT_DOUBLE_EQ(bus_factor(perf::Test::kAllReduce, 1), 0);
}

}  // namespace
}  // namespace verbena::perf
