#include "host/local/doorbells.h"

#include <gtest/gtest.h>

#include <memory>

namespace verbena::host {
namespace {

TEST(DoorbellsTest, TheOwnerHearsWhoRang) {
  const auto bells = std::make_unique<Doorbells>();
  Doorbells::Rung rung{};
  EXPECT_FALSE(bells->take(rung));
  EXPECT_FALSE(bells->ring(5));
  EXPECT_FALSE(bells->ring(1022));
  EXPECT_TRUE(bells->take(rung));
  EXPECT_EQ(rung[0], u64{1} << 5);
  EXPECT_EQ(rung[15], u64{1} << 62);
  EXPECT_FALSE(bells->take(rung));
}

TEST(DoorbellsTest, OneOfThoseWhoRingWakesTheSleeper) {
  const auto bells = std::make_unique<Doorbells>();
  bells->sleep();
  EXPECT_TRUE(bells->ring(5));
  EXPECT_FALSE(bells->ring(6));
  bells->sleep();
  bells->wake();
  EXPECT_FALSE(bells->ring(7));
}

}  // namespace
}  // namespace verbena::host
