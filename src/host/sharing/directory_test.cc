#include "host/sharing/directory.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>

namespace verbena::host {
namespace {

class DirectoryTest : public testing::Test {
 protected:
  DirectoryTest() { EXPECT_NE(::mkdtemp(folder_.data()), nullptr); }
  ~DirectoryTest() override {
    ::unlink(path().c_str());
    ::unlink(link().c_str());
    ::rmdir(folder_.c_str());
  }
  std::string path() const { return folder_ + "/directory"; }
  std::string link() const { return folder_ + "/link"; }
  Directory open() const { return std::move(*Directory::open_file(path())); }

  static DirectoryTable some_table() {
    return {.generation = 0,
            .members = {{.address = *GID::parse("192.0.2.1"), .slot = 5, .index = 0},
                        {.address = *GID::parse("192.0.2.1"), .slot = 9, .index = 1},
                        {.address = *GID::parse("2001:db8::1"), .slot = 9, .index = 0}}};
  }

  std::string folder_ = "/tmp/verbena-directory-test-XXXXXX";
};

TEST_F(DirectoryTest, NewIsEmptyAndPrivate) {
  EXPECT_TRUE(open().read().members.empty());
  struct stat file {};
  ASSERT_EQ(::stat(path().c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600u);
}

TEST_F(DirectoryTest, WhatOneWritesAnotherReads) {
  Directory one = open();
  DirectoryTable table = some_table();
  one.write(table);
  const DirectoryTable read = open().read();
  EXPECT_EQ(read.members, table.members);
  EXPECT_EQ(read.generation, 1u);
}

TEST_F(DirectoryTest, ALockExcludesOthersUntilItsEnd) {
  Directory one = open(), two = open();
  {
    const auto lock = one.lock(Duration());
    ASSERT_TRUE(lock.has_value());
    const auto refused = two.lock(ms(2));
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().error, EBUSY);
    EXPECT_NE(refused.error().message.find("process " + std::to_string(::getpid())),
              std::string::npos)
        << refused.error().message;
  }
  EXPECT_TRUE(two.lock(Duration()).has_value());
}

TEST_F(DirectoryTest, EveryDamageReadsAsEmpty) {
  Directory directory = open();
  DirectoryTable table = some_table();
  directory.write(table);
  struct stat file {};
  ASSERT_EQ(::stat(path().c_str(), &file), 0);
  for (off_t size = 0; size < file.st_size; ++size) {
    directory.write(table);
    ASSERT_EQ(::truncate(path().c_str(), size), 0);
    EXPECT_TRUE(open().read().members.empty()) << size;
  }
  for (off_t at = 0; at < file.st_size; ++at) {
    directory.write(table);
    std::fstream bytes(path(), std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekg(at);
    const int byte = bytes.get();
    bytes.seekp(at);
    bytes.put(static_cast<char>(byte ^ 0x10));
    bytes.close();
    if (at >= 8 && at < 16) continue;  // the generation: any value will do
    EXPECT_TRUE(open().read().members.empty()) << at;
  }
  directory.write(table);
  EXPECT_EQ(open().read().members, table.members);
}

TEST_F(DirectoryTest, RefusesWhatAnotherMayHaveMade) {
  open();
  ASSERT_EQ(::symlink(path().c_str(), link().c_str()), 0);
  EXPECT_EQ(Directory::open_file(link()).error().error, ELOOP);
  ASSERT_EQ(::chmod(path().c_str(), 0666), 0);
  EXPECT_EQ(Directory::open_file(path()).error().error, EPERM);
  EXPECT_FALSE(Directory::open_file(folder_).has_value());
  EXPECT_FALSE(Directory::open_file(folder_ + "/missing/file").has_value());
}

TEST_F(DirectoryTest, ForgettingASlotMakesItsNeighboursUnknown) {
  DirectoryTable table = some_table();
  table.members.push_back({.address = *GID::parse("192.0.2.7"), .slot = 3, .index = 0});
  table.forget(9);
  const std::vector<Membership> expected = {
      {.address = *GID::parse("192.0.2.1"), .slot = 5, .index = kUnknownIndex},
      {.address = *GID::parse("192.0.2.7"), .slot = 3, .index = 0}};
  EXPECT_EQ(table.members, expected);
  table.forget(77);
  EXPECT_EQ(table.members, expected);
}

}  // namespace
}  // namespace verbena::host
