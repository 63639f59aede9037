#include "host/local/ring_claims.h"

#include <gtest/gtest.h>

#include <memory>

namespace verbena::host {
namespace {

TEST(RingClaimsTest, APeerKeepsItsRing) {
  const auto claims = std::make_unique<RingClaims>();
  EXPECT_EQ(claims->find(7), std::nullopt);
  const std::optional<u32> ring = claims->claim(7);
  ASSERT_TRUE(ring.has_value());
  EXPECT_EQ(claims->claim(7), ring);
  EXPECT_EQ(claims->find(7), ring);
  EXPECT_NE(claims->claim(8), ring);
}

TEST(RingClaimsTest, WhereAllAreTakenOneThatEndedLeavesIts) {
  const auto claims = std::make_unique<RingClaims>();
  for (u32 slot = 1; slot <= RingClaims::kRings; ++slot)
    EXPECT_TRUE(claims->claim(slot).has_value());
  constexpr u32 kLate = 1000;
  EXPECT_EQ(claims->claim(kLate), std::nullopt);
  const std::optional<u32> left = claims->find(5);
  EXPECT_EQ(claims->take_over(kLate, 5), left);
  EXPECT_EQ(claims->find(kLate), left);
  EXPECT_EQ(claims->find(5), std::nullopt);
  EXPECT_EQ(claims->take_over(kLate, 5), std::nullopt);
}

}  // namespace
}  // namespace verbena::host
