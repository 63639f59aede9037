// tests/programs/two_hosts_test.py has neighbours that are there, and some that are not.
#include "host/network/next_hop.h"

#include <gtest/gtest.h>

namespace verbena::host {
namespace {

TEST(NextHopTest, ToThisHostThereIsNone) {
  for (const char* text : {"127.0.0.1", "127.77.1.2", "::1"})
    EXPECT_FALSE(NextHop::towards(*GID::parse(text), 0).has_value()) << text;
}

TEST(NextHopTest, WithoutARouteThereIsNone) {
  EXPECT_FALSE(NextHop::towards(*GID::parse("fe80::1"), 0x7fffffff).has_value());
}

}  // namespace
}  // namespace verbena::host
