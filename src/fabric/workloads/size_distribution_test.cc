#include "fabric/workloads/size_distribution.h"

#include <gtest/gtest.h>

namespace verbena::fabric {
namespace {

TEST(SizeDistribution, DrawsHaveTheMeanAndThePercents) {
  for (const std::string_view name : SizeDistribution::names()) {
    const SizeDistribution sizes = *SizeDistribution::named(name);
    PRNG prng(1);
    double sum = 0;
    constexpr int kDraws = 200'000;
    for (int i = 0; i < kDraws; ++i) sum += static_cast<double>(sizes.draw(prng));
    EXPECT_NEAR(sum / kDraws / sizes.mean(), 1, 0.02) << name;
  }
  EXPECT_NEAR(SizeDistribution::named("websearch")->mean(), 1.71e6, 0.01e6);
  EXPECT_FALSE(SizeDistribution::named("cobweb").has_value());
}

TEST(SizeDistribution, FilesAreReadOrRefused) {
  const auto sizes = SizeDistribution::parse("s", "100 0\n200 50\n# a comment\n1000 100\n");
  ASSERT_TRUE(sizes.has_value());
  EXPECT_DOUBLE_EQ(sizes->mean(), 0.5 * 150 + 0.5 * 600);
  for (const char* const bad : {"", "100", "100 0\n50 100", "1 100\n2 50", "1 0\n2 101", "a b",
                                "1 0\n2 50", "0 0\n0 100", "1 nan\n2 100"})
    EXPECT_FALSE(SizeDistribution::parse("s", bad).has_value()) << bad;
}

TEST(SizeDistribution, OneSize) {
  PRNG prng(3);
  EXPECT_EQ(SizeDistribution::always(777).draw(prng), 777u);
}

}  // namespace
}  // namespace verbena::fabric
