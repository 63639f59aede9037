#include "abi/paths/other_library.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace verbena::abi::paths {
namespace {

constexpr const char* kOwnLine =
    "7f10-7f20 r-xp 00000000 fe:00 12   /opt/v/lib/libverbena-paths.so";
constexpr const char* kOursLine = "7f20-7f30 r-xp 00000000 fe:00 13   /opt/v/lib/libibverbs.so.1";
constexpr const char* kTheirLine =
    "7f30-7f40 r--p 00000000 fe:00 14   /usr/lib/libibverbs.so.1.14.44.0";

std::string other_of(std::initializer_list<const char*> lines) {
  auto libraries = std::make_unique<LoadedLibraries>();
  for (const char* line : lines) libraries->on_line(line);
  return std::string(libraries->other());
}

TEST(OtherLibraryTest, AnotherFolderIsAnotherLibrary) {
  EXPECT_EQ(other_of({"7f00-7f10 rw-p 00000000 00:00 0  [heap]", kOwnLine, kTheirLine, kTheirLine}),
            "/usr/lib/libibverbs.so.1.14.44.0");
  EXPECT_EQ(other_of({kTheirLine, kOwnLine}), "/usr/lib/libibverbs.so.1.14.44.0");
}

TEST(OtherLibraryTest, OursIsRightEvenBesideAnother) {
  EXPECT_EQ(other_of({kOwnLine, kOursLine}), "");
  EXPECT_EQ(other_of({kOwnLine, kTheirLine, kOursLine}), "");
}

TEST(OtherLibraryTest, NothingIsSaidWhereNothingIsKnown) {
  EXPECT_EQ(other_of({}), "");
  EXPECT_EQ(other_of({kOwnLine}), "");
  EXPECT_EQ(other_of({kTheirLine}), "");
  EXPECT_EQ(other_of({kOwnLine, "7f30-7f40 r--p 0 fe:00 14 /usr/lib/libibverbs_extra.so.1"}), "");
}

}  // namespace
}  // namespace verbena::abi::paths
