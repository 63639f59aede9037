#include "cli/library_folder.h"

#include <unistd.h>

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace verbena::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class LibraryFolderTest : public ::testing::Test {
 protected:
  LibraryFolderTest() {
    std::string name = (fs::temp_directory_path() / "verbena-test-XXXXXX").string();
    root_ = mkdtemp(name.data());
    fs::create_directories(root_ / "bin");
  }
  ~LibraryFolderTest() override { fs::remove_all(root_); }
  void add_library(const fs::path& folder) const {
    fs::create_directories(root_ / folder);
    std::ofstream(root_ / folder / kLibraryName) << "not a library";
  }

  fs::path root_;
};

TEST_F(LibraryFolderTest, TheFirstThatHoldsTheLibraryWins) {
  add_library("lib");
  EXPECT_EQ(find_library_folder(root_ / "bin", "../lib/verbena:../lib").value(), root_ / "lib");
  add_library("lib/verbena");
  EXPECT_EQ(find_library_folder(root_ / "bin", "../lib/verbena:../lib").value(),
            root_ / "lib/verbena");
}

TEST_F(LibraryFolderTest, NoneHoldsIt) {
  fs::create_directories(root_ / "lib");
  const auto folder = find_library_folder(root_ / "bin", "../lib/verbena:../lib");
  ASSERT_FALSE(folder.has_value());
  EXPECT_EQ(folder.error().exit_status, 2);
  EXPECT_THAT(folder.error().message, HasSubstr((root_ / "lib/verbena").string() + ", "));
  EXPECT_FALSE(find_library_folder(root_ / "bin", "").has_value());
}

TEST_F(LibraryFolderTest, AFileThatIsNoLibraryIsRefusedInOneLine) {
  add_library("lib");
  const auto loads = check_library_loads(root_ / "lib");
  ASSERT_FALSE(loads.has_value());
  EXPECT_EQ(loads.error().exit_status, 2);
  EXPECT_THAT(loads.error().message, HasSubstr("cannot be loaded"));
  EXPECT_EQ(loads.error().message.find('\n'), std::string::npos);
}

TEST_F(LibraryFolderTest, WhatWasInThePathStaysBehindOurs) {
  EXPECT_EQ(library_path("/v", nullptr), "/v");
  EXPECT_EQ(library_path("/v", ""), "/v");  // an empty entry would mean the working directory
  EXPECT_EQ(library_path("/v", "/a:/b"), "/v:/a:/b");
}

TEST_F(LibraryFolderTest, WhatWasPreloadedStaysBeforeOurs) {
  EXPECT_EQ(preloaded("/v", nullptr), "/v/libverbena-paths.so");
  EXPECT_EQ(preloaded("/v", ""), "/v/libverbena-paths.so");
  EXPECT_EQ(preloaded("/v", "libasan.so"), "libasan.so:/v/libverbena-paths.so");
}

TEST_F(LibraryFolderTest, AFolderThatLDPreloadCannotNameIsLeftToTheLibraryPath) {
  EXPECT_EQ(preloaded("/a folder", nullptr), "libverbena-paths.so");
}

}  // namespace
}  // namespace verbena::cli
