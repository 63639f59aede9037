#include "fabric/scenario/units.h"

#include <gtest/gtest.h>

namespace verbena::fabric {
namespace {

TEST(Units, Rates) {
  EXPECT_EQ(rate_of("100Gbps"), gbps(100));
  EXPECT_EQ(rate_of("25 Gb/s"), gbps(25));
  EXPECT_EQ(rate_of("2.5G"), mbps(2500));
  EXPECT_EQ(rate_of("100"), std::nullopt);
  EXPECT_EQ(rate_of("100GB"), std::nullopt);
  EXPECT_EQ(rate_of("-1Gbps"), std::nullopt);
  EXPECT_EQ(rate_of("1e400Gbps"), std::nullopt);
  EXPECT_EQ(rate_of(""), std::nullopt);
  EXPECT_EQ(rate_text(100e9), "100 Gb/s");
}

TEST(Units, Times) {
  EXPECT_EQ(duration_of("1us"), us(1));
  EXPECT_EQ(duration_of("0.5 ns"), ps(500));
  EXPECT_EQ(duration_of("0"), Duration());
  EXPECT_EQ(duration_of("1"), std::nullopt);
  EXPECT_EQ(duration_of("99999999999s"), std::nullopt);
  EXPECT_EQ(duration_text(ns(1500)), "1.5 us");
}

TEST(Units, Sizes) {
  EXPECT_EQ(bytes_of("1500"), 1500u);
  EXPECT_EQ(bytes_of("50k"), 50'000u);
  EXPECT_EQ(bytes_of("1.5MB"), 1'500'000u);
  EXPECT_EQ(bytes_of("2MiB"), 2u << 20);
  EXPECT_EQ(bytes_of("1Gbps"), std::nullopt);
  EXPECT_EQ(bytes_text(1'250'000), "1.25 MB");
}

TEST(Units, Numbers) {
  EXPECT_EQ(number_of("1/8"), 0.125);
  EXPECT_EQ(number_of("12.5%"), 0.125);
  EXPECT_EQ(number_of("0.2"), 0.2);
  EXPECT_EQ(number_of("1e-5"), 1e-5);
  EXPECT_EQ(number_of("1/0"), std::nullopt);
  EXPECT_EQ(number_of("often"), std::nullopt);
}

}  // namespace
}  // namespace verbena::fabric
