#include "host/links/fabric/address_map.h"

#include <gtest/gtest.h>

namespace verbena::host {
namespace {

GID gid(const char* text) { return *GID::parse(text); }

TEST(AddressMapTest, BothDirections) {
  const Expected<AddressMap> map = AddressMap::parse(
      "# as ibacm_hosts.data\n"
      "10.0.0.2   fe80::256:4500:0:201  # h1\n"
      "\n"
      "10.0.0.1\tfe80::256:4500:0:101\n"
      "fd00::2 fe80::256:4500:0:201\n"
      "10.0.0.3 127.64.0.3\n");
  ASSERT_TRUE(map.has_value()) << map.error().message;
  EXPECT_EQ(map->size(), 4u);
  EXPECT_EQ(map->target_of(gid("10.0.0.1")), gid("fe80::256:4500:0:101"));
  EXPECT_EQ(map->target_of(gid("10.0.0.3")), gid("127.64.0.3"));
  EXPECT_FALSE(map->target_of(gid("10.0.0.4")).has_value());
  EXPECT_EQ(map->address_of(gid("fe80::256:4500:0:201"), true), gid("10.0.0.2"));
  EXPECT_EQ(map->address_of(gid("fe80::256:4500:0:201"), false), gid("fd00::2"));
  EXPECT_FALSE(map->address_of(gid("fe80::256:4500:0:101"), false).has_value());
}

TEST(AddressMapTest, MistakesNameTheLine) {
  const auto message = [](const char* text) {
    const Expected<AddressMap> map = AddressMap::parse(text);
    return map ? std::string() : map.error().message;
  };
  EXPECT_EQ(message("\n10.0.0.300 fe80::1\n"), "line 2: 10.0.0.300 is no IP address");
  EXPECT_EQ(message("10.0.0.1\n"),
            "line 1: the GID of a port, or the address of a host, is needed for 10.0.0.1");
  EXPECT_EQ(message("10.0.0.1 h1\n"),
            "line 1: the GID of a port, or the address of a host, is needed for 10.0.0.1");
  EXPECT_EQ(message("10.0.0.1 fe80::1 h1\n"), "line 1: there is more behind the GID: h1");
  EXPECT_EQ(message("10.0.0.1 fe80::1\n10.0.0.1 fe80::2\n"), "10.0.0.1 is there twice");
  EXPECT_EQ(message(""), "");
}

}  // namespace
}  // namespace verbena::host
