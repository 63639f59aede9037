#include "abi/rdmacm/rsocket/settings.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace verbena::rdmacm::rsocket {
namespace {

class RSocketSettingsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "rsocket-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern + "/";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + name) << text;
  }
  [[nodiscard]] Defaults read() const { return read_defaults(folder_); }

 private:
  std::string folder_;
};

TEST_F(RSocketSettingsTest, WithoutFiles) {
  const Defaults all = read();
  EXPECT_EQ(all.settings.send_bytes, 131072U);
  EXPECT_EQ(all.settings.receive_bytes, 131072U);
  EXPECT_EQ(all.settings.send_queue, 384U);
  EXPECT_EQ(all.settings.receive_queue, 384U);
  EXPECT_EQ(all.settings.inline_bytes, 64U);
  EXPECT_EQ(all.settings.iomaps, 0U);
  EXPECT_EQ(all.polling_time.count(), 10);
  EXPECT_EQ(all.longest_sleep.count(), 500);
}

TEST_F(RSocketSettingsTest, EachFileIsOneNumber) {
  write("mem_default", "1000001\n");
  write("wmem_default", " 65536");
  write("sqsize_default", "100");
  write("rqsize_default", "200");
  write("inline_default", "0");
  write("iomap_size", "300");
  write("polling_time", "50");
  write("wake_up_interval", "20");
  const Defaults all = read();
  EXPECT_EQ(all.settings.receive_bytes, 1000000U);  // two halves
  EXPECT_EQ(all.settings.send_bytes, 65536U);
  EXPECT_EQ(all.settings.send_queue, 100U);
  EXPECT_EQ(all.settings.receive_queue, 200U);
  EXPECT_EQ(all.settings.inline_bytes, 0U);
  EXPECT_EQ(all.settings.iomaps, 256U);  // as it travels
  EXPECT_EQ(all.polling_time.count(), 50);
  EXPECT_EQ(all.longest_sleep.count(), 20);
}

TEST_F(RSocketSettingsTest, WhatMakesNoSenseIsWithoutEffectOrTheNearest) {
  write("mem_default", "1");
  write("wmem_default", "99999999999999999999999");
  write("sqsize_default", "many");
  write("rqsize_default", "");
  write("inline_default", "-5");
  write("wake_up_interval", "0");
  const Defaults all = read();
  EXPECT_EQ(all.settings.receive_bytes, kLeastBuffer);
  EXPECT_EQ(all.settings.send_bytes, 131072U);
  EXPECT_EQ(all.settings.send_queue, 384U);
  EXPECT_EQ(all.settings.receive_queue, 384U);
  EXPECT_EQ(all.settings.inline_bytes, 64U);
  EXPECT_EQ(all.longest_sleep.count(), 1);
}

}  // namespace
}  // namespace verbena::rdmacm::rsocket
