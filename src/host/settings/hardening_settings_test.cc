#include "host/settings/hardening_settings.h"

#include <gtest/gtest.h>

namespace verbena::host {
namespace {

TEST(HardeningSettingsTest, Words) {
  const auto all = hardening_settings("qpn,zero,refusals");
  ASSERT_TRUE(all.has_value());
  EXPECT_TRUE(all->device.random_qpns);
  EXPECT_TRUE(all->zeroes_memory);
  EXPECT_EQ(all->device.refusals_per_second, 100u);
  EXPECT_EQ(hardening_settings("refusals=7")->device.refusals_per_second, 7u);
  const auto none = hardening_settings("");
  EXPECT_FALSE(none->device.random_qpns);
  EXPECT_EQ(none->device.refusals_per_second, 0u);
}

TEST(HardeningSettingsTest, Refusals) {
  for (const char* const text :
       {"qp", "refusals=", "refusals=0", "refusals=x", "zero,", "zero,,qpn"})
    EXPECT_EQ(hardening_settings(text).has_value(), std::string_view(text) == "zero,") << text;
}

}  // namespace
}  // namespace verbena::host
