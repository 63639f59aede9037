#include "application/address.h"

#include <gtest/gtest.h>

namespace verbena::application {
namespace {

TEST(AddressTest, ThePortIsOptional) {
  const GID ipv4 = GID::from_ipv4(0x0a000001), ipv6 = *GID::parse("fd00::1");
  struct Case {
    const char* text;
    GID ip;
    u16 port;
  };
  for (const Case& c :
       {Case{"10.0.0.1", ipv4, 4420}, Case{"10.0.0.1:9", ipv4, 9}, Case{"fd00::1", ipv6, 4420},
        Case{"[fd00::1]", ipv6, 4420}, Case{"[fd00::1]:65535", ipv6, 65535}}) {
    const auto address = parse_address(c.text, 4420);
    ASSERT_TRUE(address.has_value()) << c.text;
    EXPECT_EQ(address->ip, c.ip) << c.text;
    EXPECT_EQ(address->port, c.port) << c.text;
  }
}

TEST(AddressTest, RefusesOthers) {
  for (const char* const text :
       {"", ":", "[", "]", "[]", "[]:1", "10.0.0.1:", "10.0.0.1:0", "10.0.0.1:65536", "10.0.0.1:x",
        "10.0.0.1]", "[fd00::1", "[fd00::1]:", "[fd00::1]4420", "fd00::1]", "host", "host:4420"})
    EXPECT_FALSE(parse_address(text, 4420).has_value()) << text;
}

}  // namespace
}  // namespace verbena::application
