#include "fabric/marking.h"

#include <gtest/gtest.h>

namespace verbena::fabric {
namespace {

constexpr MarkingConfig kConfig{.k_min = 1000, .k_max = 3000, .p_max = 0.5};

double share_marked(u64 bytes) {
  PRNG prng(5);
  u32 marked = 0;
  for (int i = 0; i < 20'000; ++i) marked += marks(kConfig, bytes, prng) ? 1 : 0;
  return marked / 20'000.0;
}

TEST(Marking, ARampBetweenTheThresholds) {
  EXPECT_EQ(share_marked(0), 0);
  EXPECT_EQ(share_marked(1000), 0);
  EXPECT_NEAR(share_marked(2000), 0.25, 0.01);
  EXPECT_NEAR(share_marked(3000), 0.5, 0.01);
  EXPECT_EQ(share_marked(3001), 1);
}

}  // namespace
}  // namespace verbena::fabric
