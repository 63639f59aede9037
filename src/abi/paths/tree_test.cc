#include "abi/paths/tree.h"

#include <array>
#include <climits>
#include <string>

#include <gtest/gtest.h>

namespace verbena::abi::paths {
namespace {

std::string real_name(const Tree& tree, std::string_view path) {
  std::array<char, PATH_MAX> out{};
  return tree.real_name(path, out.data(), out.size()) ? out.data() : "";
}

TEST(TreeTest, HoldsTheFoldersOfInfiniBandDevices) {
  for (const char* path :
       {"/dev/infiniband", "/dev/infiniband/", "/dev/infiniband/uverbs0", "/sys/class/infiniband",
        "/sys/class/infiniband/verbena0/ports/1/gids/0", "/sys/class/infiniband_verbs/abi_version",
        "/sys/class/infiniband_mad", "/sys/devices/virtual/infiniband/verbena0",
        "//sys//class///infiniband", "/sys/./class/infiniband/.", "/sys/class/infiniband/../x"})
    EXPECT_TRUE(Tree::holds(path)) << path;
}

TEST(TreeTest, HoldsNothingElse) {
  for (const char* path :
       {"", "/", "/dev", "/dev/infinibandx", "/dev/x/infiniband", "/sys/class", "/sys/class/net",
        "/sys/class/infinib", "dev/infiniband", "/usr/include/infiniband/verbs.h",
        "/x/sys/class/infiniband", "/sys/devices/virtual", "/sys/class/net/infiniband"})
    EXPECT_FALSE(Tree::holds(path)) << path;
}

TEST(TreeTest, NamesGoThereAndBack) {
  const Tree tree("/tmp/t");
  EXPECT_EQ(real_name(tree, "/sys/class/infiniband/a"), "/tmp/t/sys/class/infiniband/a");
  EXPECT_EQ(real_name(tree, "/etc/passwd"), "");
  EXPECT_EQ(tree.known_name("/tmp/t/sys/class/infiniband/a"), "/sys/class/infiniband/a");
  for (const char* other : {"/tmp/t", "/tmp/tree/x", "/tmp", "/sys/class/infiniband/a", ""})
    EXPECT_EQ(tree.known_name(other), "") << other;
}

TEST(TreeTest, WithoutAFolderNothingIsRedirected) {
  EXPECT_EQ(real_name(Tree(), "/sys/class/infiniband"), "");
  EXPECT_EQ(Tree().known_name("/sys/class/infiniband"), "");
}

TEST(TreeTest, ANameWithoutRoomIsNotCut) {
  const std::string path = "/dev/infiniband/uverbs0";
  std::array<char, 64> out{};
  const std::size_t needed = std::string("/t").size() + path.size() + 1;
  EXPECT_FALSE(Tree("/t").real_name(path, out.data(), needed - 1));
  EXPECT_TRUE(Tree("/t").real_name(path, out.data(), needed));
}

}  // namespace
}  // namespace verbena::abi::paths
