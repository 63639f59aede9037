#include "host/capture/capture_file.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "host/os/clock.h"

namespace verbena::host {
namespace {

namespace fs = std::filesystem;

class CaptureFileTest : public testing::Test {
 protected:
  CaptureFileTest() {
    std::string name = (fs::temp_directory_path() / "capture-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    path_ = folder_ / "trace.pcapng";
  }
  ~CaptureFileTest() override { fs::remove_all(folder_); }

  std::unique_ptr<CaptureFile> create(u64 limit_bytes = 0) {
    auto file = CaptureFile::create(path_.string(), limit_bytes);
    EXPECT_TRUE(file.has_value()) << (file ? "" : file.error().message);
    return file ? std::move(*file) : nullptr;
  }
  static void add(CaptureFile& file, std::size_t payload) {
    std::vector<u8> transport(16 + payload);
    file.add(0,
             {.source = *GID::parse("10.0.0.1"),
              .destination = *GID::parse("10.0.0.2"),
              .transport = transport},
             pcapng::PacketDirection::kInbound, monotonic_now(), "comment");
    file.write();
  }
  static std::vector<char> bytes_of(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  fs::path folder_, path_;
};

TEST_F(CaptureFileTest, WhatIsWrittenIsThere) {
  const auto file = create();
  ASSERT_NE(file, nullptr);
  (void)file->add_interface("eth0");
  const std::size_t before = bytes_of(path_).size();
  add(*file, 100);
  EXPECT_GT(bytes_of(path_).size(), before + 100);
}

TEST_F(CaptureFileTest, AFileInUseIsLeftAlone) {
  const auto first = create(), second = create();
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(first->path(), path_.string());
  EXPECT_EQ(second->path(),
            (folder_ / ("trace-" + std::to_string(::getpid()) + ".pcapng")).string());
}

TEST_F(CaptureFileTest, TheLimitKeepsTheNewest) {
  constexpr u64 kLimit = 20'000;
  const auto file = create(kLimit);
  (void)file->add_interface("eth0");
  for (int i = 0; i < 200; ++i) add(*file, 1000);
  const auto now = bytes_of(path_), old = bytes_of(path_.string() + ".old");
  EXPECT_LE(now.size() + old.size(), kLimit + 4000);
  EXPECT_GT(old.size(), kLimit / 2 - 4000);
  EXPECT_EQ(now[0], 0x0a);  // each has a section header
  EXPECT_EQ(old[0], 0x0a);
}

TEST_F(CaptureFileTest, ShortFramesAreWrittenToo) {
  const auto file = create();
  (void)file->add_interface("eth0");
  std::vector<u8> runt(3);
  file->add(0, {.source = {}, .destination = {}, .transport = runt},
            pcapng::PacketDirection::kInbound, monotonic_now());
  file->write();
  EXPECT_GT(bytes_of(path_).size(), 100u);
}

TEST_F(CaptureFileTest, APlaceThatCannotBeWrittenIsNamed) {
  const auto file = CaptureFile::create("/nonexistent/x.pcapng", 0);
  ASSERT_FALSE(file.has_value());
  EXPECT_NE(file.error().message.find("/nonexistent/x.pcapng"), std::string::npos);
}

}  // namespace
}  // namespace verbena::host
