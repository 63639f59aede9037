#include "wire/ib/gid.h"

#include <gtest/gtest.h>

namespace verbena {
namespace {

GID must_parse(std::string_view text) {
  const std::optional<GID> gid = GID::parse(text);
  EXPECT_TRUE(gid.has_value()) << text;
  return gid.value_or(GID{});
}

TEST(GIDTest, IPv4) {
  const GID gid = GID::from_ipv4(0x0a4d0002);
  EXPECT_EQ(gid.bytes,
            (std::array<u8, 16>{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77, 0, 2}));
  EXPECT_TRUE(gid.is_ipv4());
  EXPECT_EQ(gid.ipv4(), 0x0a4d0002u);
  EXPECT_EQ(gid.to_string(), "10.77.0.2");
  EXPECT_EQ(must_parse("10.77.0.2"), gid);
  EXPECT_EQ(must_parse("::ffff:10.77.0.2"), gid);
  EXPECT_EQ(must_parse("::ffff:a4d:2"), gid);
}

TEST(GIDTest, TextOfRFC5952BothWays) {
  for (const char* text :
       {"::", "::1", "fe80::5054:ff:fe77:3", "2001:db8::1", "2001:db8:0:1:1:1:1:1", "2001:0:0:1::1",
        "ff02::1:ff00:1", "2001:db8:1:2:3:4:5:6", "0.0.0.0", "255.255.255.255"})
    EXPECT_EQ(must_parse(text).to_string(), text);
  EXPECT_EQ(must_parse("2001:DB8:0:0:0:0:0:1").to_string(), "2001:db8::1");
}

TEST(GIDTest, ParseRefuses) {
  for (const char* text :
       {"", " ", "1", "10.77.0", "10.77.0.256", "10.77.0.2.3", "10.77.0.2 ", "fe80", "fe80:::1",
        "fe80::1::2", "fe80::1%eth0", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "::g", "::12345"})
    EXPECT_FALSE(GID::parse(text).has_value()) << text;
  EXPECT_FALSE(GID::parse(std::string_view("::1\0", 4)).has_value());
  EXPECT_FALSE(GID::parse(std::string(1000, '1')).has_value());
}

TEST(GIDTest, Kinds) {
  EXPECT_TRUE(GID{}.is_zero());
  EXPECT_FALSE(must_parse("::1").is_zero());
  EXPECT_TRUE(must_parse("fe80::1").is_link_local());
  EXPECT_TRUE(must_parse("febf::1").is_link_local());
  EXPECT_FALSE(must_parse("fec0::1").is_link_local());
  EXPECT_TRUE(must_parse("ff0e::1").is_multicast());
  EXPECT_TRUE(must_parse("239.1.2.3").is_multicast());
  EXPECT_FALSE(must_parse("10.77.0.2").is_multicast());
  EXPECT_FALSE(must_parse("::1.2.3.4").is_ipv4());
}

}  // namespace
}  // namespace verbena
