#include "coll/host_port.h"

#include <gtest/gtest.h>

namespace verbena::coll {
namespace {

void expect_parts(const char* text, const char* host, u16 port) {
  const auto parts = parse_host_port(text);
  ASSERT_TRUE(parts.has_value()) << text;
  EXPECT_EQ(parts->host, host) << text;
  EXPECT_EQ(parts->port, port) << text;
}

TEST(HostPortTest, NamesAndAddresses) {
  expect_parts("node-3:29500", "node-3", 29500);
  expect_parts("10.0.0.1:0", "10.0.0.1", 0);
  expect_parts(":7000", "", 7000);
  expect_parts("[fd00::1]:7000", "fd00::1", 7000);
  expect_parts("fd00::1:7000", "fd00::1", 7000);  // what MASTER_ADDR and MASTER_PORT give
}

TEST(HostPortTest, RefusesOthers) {
  for (const char* const text : {"", ":", "host", "host:", "host:x", "host:1x", "host:-1",
                                 "host: 1", "host:65536", "[fd00::1]"})
    EXPECT_FALSE(parse_host_port(text).has_value()) << text;
}

}  // namespace
}  // namespace verbena::coll
