#include "jobs/live_prediction.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

namespace verbena::jobs {
namespace {

coll::Costs costs() {
  const std::string path = testing::TempDir() + "coll_costs_test.txt";
  std::ofstream(path)
      << "latency 500\ncost copy 1000 100\ncost copy 100000000 100\n"
         "cost reduce 1000 200\ncost reduce 100000000 400\nchoose AllReduce 2 1 ring 0\n";
  const auto read = coll::Costs::read(path);
  EXPECT_TRUE(read) << read.error().text;
  std::remove(path.c_str());
  return *read;
}

double ns_of(coll::Kind kind, u64 bytes, u32 ranks) {
  const coll::Call call{.kind = kind, .type = coll::DataType::kFloat32, .count = bytes / 4};
  return predict(call, ranks, {}, costs()).seconds() * 1e9;
}

TEST(LivePrediction, CostsAreInterpolated) {
  EXPECT_DOUBLE_EQ(costs().copy(5), 100);
  EXPECT_DOUBLE_EQ(costs().reduce(1000), 200);
  EXPECT_NEAR(costs().reduce(316228), 300, 0.1);  // halfway, by the logarithm
  EXPECT_DOUBLE_EQ(costs().reduce(u64{1} << 40), 400);
  EXPECT_FALSE(coll::Costs::read("/nowhere"));
}

// Each of three ranks copies two blocks of 300,000 bytes at 0.1 ns.
TEST(LivePrediction, AllGatherIsWhatARankCopies) {
  EXPECT_NEAR(ns_of(coll::Kind::kAllGather, 300000, 3), 2 * 30000, 2000);
}

// There a rank copies its own block, too.
TEST(LivePrediction, AllToAllIsNotInPlace) {
  EXPECT_NEAR(ns_of(coll::Kind::kAllToAll, 300000, 3), 3 * 30000, 2000);
}

TEST(LivePrediction, AllReduceIsReductionsThenCopies) {
  const double bytes = 8e6, half = bytes / 2;
  const double work = half * costs().reduce(8000000) / 1000 + half * 0.1;
  EXPECT_NEAR(ns_of(coll::Kind::kAllReduce, 8000000, 2) / work, 1, 0.15);
}

TEST(LivePrediction, SmallOnesTakeTheLatency) {
  EXPECT_NEAR(ns_of(coll::Kind::kAllReduce, 8, 2), 502, 5);
}

}  // namespace
}  // namespace verbena::jobs
