#include "host/settings/mpa_settings.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace verbena::host {
namespace {

TEST(MPASettingsTest, TheDefaultsAreTheStandards) {
  const Expected<MPAConfig> config = mpa_settings("");
  ASSERT_TRUE(config.has_value());
  EXPECT_TRUE(config->crc);
  EXPECT_TRUE(config->peer_to_peer);
  EXPECT_EQ(config->revision, 2);
}

TEST(MPASettingsTest, WordsInAnyOrder) {
  const Expected<MPAConfig> config = mpa_settings("p2p=off,mpa=1,crc=off");
  ASSERT_TRUE(config.has_value());
  EXPECT_FALSE(config->crc);
  EXPECT_FALSE(config->peer_to_peer);
  EXPECT_EQ(config->revision, 1);
}

TEST(MPASettingsTest, AnyOtherWordIsNamed) {
  for (const char* text : {"crc", "crc=", "mpa=3", "crc=on, mpa=1", "crc=on,,mpa=1"}) {
    const Expected<MPAConfig> config = mpa_settings(text);
    ASSERT_FALSE(config.has_value()) << text;
    EXPECT_EQ(config.error().error, EINVAL);
    EXPECT_TRUE(config.error().message.starts_with("VERBENA_IWARP: \"")) << config.error().message;
  }
}

}  // namespace
}  // namespace verbena::host
