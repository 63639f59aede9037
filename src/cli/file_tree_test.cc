#include "cli/file_tree.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>

namespace verbena::cli {
namespace {

namespace fs = std::filesystem;

const std::vector<DeviceFile> kFiles = {
    {"/sys/class/infiniband/a/state", DeviceFileKind::kText, "4: ACTIVE\n"},
    {"/sys/class/infiniband/b", DeviceFileKind::kLink, "a"},
    {"/sys/class/infiniband/a/empty", DeviceFileKind::kFolder, ""},
};

std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class FileTreeTest : public ::testing::Test {
 protected:
  FileTreeTest() {
    std::string name = (fs::temp_directory_path() / "verbena-test-XXXXXX").string();
    parent_ = mkdtemp(name.data());
  }
  ~FileTreeTest() override { fs::remove_all(parent_); }

  fs::path parent_;
};

TEST_F(FileTreeTest, FilesLieUnderTheNamesThatProgramsKnow) {
  const fs::path folder = make_tree_folder(parent_).value();
  EXPECT_EQ(folder.parent_path(), parent_);
  ASSERT_TRUE(write_file_tree(folder, kFiles).has_value());
  EXPECT_EQ(text_of(folder / "sys/class/infiniband/b/state"), "4: ACTIVE\n");
  EXPECT_TRUE(fs::is_directory(folder / "sys/class/infiniband/a/empty"));
  struct stat status {};
  ASSERT_EQ(stat(folder.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0755u);
}

TEST_F(FileTreeTest, EachHasAFolderOfItsOwn) {
  EXPECT_NE(make_tree_folder(parent_).value(), make_tree_folder(parent_).value());
}

TEST_F(FileTreeTest, WithoutAPlaceItSaysSo) {
  const auto folder = make_tree_folder(parent_ / "missing");
  ASSERT_FALSE(folder.has_value());
  EXPECT_NE(folder.error().message.find("missing"), std::string::npos) << folder.error().message;
}

TEST_F(FileTreeTest, WhatCannotBeWrittenIsAFailure) {
  const std::vector<DeviceFile> files = {{"/a", DeviceFileKind::kText, ""},
                                         {"/a/b", DeviceFileKind::kText, ""}};
  EXPECT_FALSE(write_file_tree(parent_, files).has_value());
}

// The user of the tree ends, and has left a child that still uses it; that ends too.
TEST_F(FileTreeTest, IsRemovedWhenTheLastUserHasEnded) {
  const fs::path folder = make_tree_folder(parent_).value();
  int child_may_end[2];
  ASSERT_EQ(pipe(child_may_end), 0);
  const pid_t user = fork();
  if (user == 0) {
    const bool removable =
        remove_when_unused(folder).has_value() && write_file_tree(folder, kFiles).has_value();
    close(child_may_end[1]);
    if (fork() == 0) {
      char byte;
      (void)!read(child_may_end[0], &byte, 1);
      _exit(0);
    }
    _exit(removable ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(user, &status, 0), user);
  EXPECT_EQ(status, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_TRUE(fs::exists(folder / "sys"));
  close(child_may_end[1]);
  for (int i = 0; i < 1000 && fs::exists(folder); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_FALSE(fs::exists(folder));
  close(child_may_end[0]);
}

}  // namespace
}  // namespace verbena::cli
