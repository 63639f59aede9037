#include "cli/system_default.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace verbena::cli {
namespace {

namespace fs = std::filesystem;

class SystemDefaultTest : public testing::Test {
 protected:
  SystemDefaultTest()
      : root_(fs::temp_directory_path() /
              ("verbena-default-" + std::to_string(::getpid()) + "-" +
               testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::create_directories(root_ / "etc/ld.so.conf.d");
    fs::create_directories(library_folder());
    fs::permissions(library_folder(), fs::perms(0755));
  }
  ~SystemDefaultTest() override { fs::remove_all(root_); }

  fs::path library_folder() const { return root_ / "lib/verbena"; }
  fs::path file() const { return root_ / "etc/ld.so.conf.d/00-verbena.conf"; }

  const fs::path root_;
  const SystemDefault default_{root_};
};

TEST_F(SystemDefaultTest, IsOffOnASystemThatNobodyChanged) {
  EXPECT_EQ(default_.folder(), std::nullopt);
  EXPECT_TRUE(default_.clear().has_value());
}

TEST_F(SystemDefaultTest, OffRemovesWhatOnWrote) {
  ASSERT_TRUE(default_.set_folder(library_folder()).has_value());
  EXPECT_EQ(default_.folder(), library_folder());
  ASSERT_TRUE(default_.set_folder(library_folder()).has_value());  // again
  EXPECT_TRUE(default_.clear().has_value());
  EXPECT_FALSE(fs::exists(file()));
  EXPECT_EQ(default_.folder(), std::nullopt);
}

TEST_F(SystemDefaultTest, AFileOfCommentsIsOff) {
  std::ofstream(file()) << "# nothing\n\n";
  EXPECT_EQ(default_.folder(), std::nullopt);
}

TEST_F(SystemDefaultTest, RefusesAFolderThatOthersCanWriteTo) {
  for (const int mode : {0775, 0757, 0777}) {
    fs::permissions(library_folder(), fs::perms(mode));
    const auto done = default_.set_folder(library_folder());
    ASSERT_FALSE(done.has_value()) << mode;
    EXPECT_THAT(done.error().message, testing::HasSubstr("other users"));
    EXPECT_FALSE(fs::exists(file()));
  }
}

TEST_F(SystemDefaultTest, NamesWhatItCannotWrite) {
  fs::remove_all(root_ / "etc");
  const auto done = default_.set_folder(library_folder());
  ASSERT_FALSE(done.has_value());
  EXPECT_THAT(done.error().message, testing::HasSubstr("00-verbena.conf"));
  EXPECT_FALSE(default_.set_folder(root_ / "no such folder").has_value());
}

}  // namespace
}  // namespace verbena::cli
