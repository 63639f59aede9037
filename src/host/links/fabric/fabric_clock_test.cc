#include "host/links/fabric/fabric_clock.h"

#include <gtest/gtest.h>

#include "host/links/fabric/fabric_protocol.h"
#include "wire/ib/gid.h"

namespace verbena::host {
namespace {

constexpr FabricClock kClock{
    .simulated = Time() + us(7), .real = Time() + sec(100), .scale = 1000, .runs = true};

TEST(FabricClockTest, GoesSlowerByTheScale) {
  EXPECT_EQ(kClock.at(kClock.real), Time() + us(7));
  EXPECT_EQ(kClock.at(kClock.real + ms(5)), Time() + us(12));
  EXPECT_EQ(kClock.at(kClock.real - ms(5)), Time() + us(7));
}

TEST(FabricClockTest, WhenIsTheInverse) {
  EXPECT_EQ(kClock.when(Time() + us(12)), kClock.real + ms(5));
  EXPECT_EQ(kClock.when(Time() + us(1)), kClock.real);
  EXPECT_EQ(kClock.when(Time::never()), Time::never());
  EXPECT_EQ(kClock.when(Time::never() - sec(1)), Time::never());  // too far to tell
}

TEST(FabricClockTest, StandsUntilItRuns) {
  FabricClock clock = kClock;
  clock.runs = false;
  EXPECT_EQ(clock.at(clock.real + sec(5)), Time() + us(7));
  EXPECT_EQ(clock.when(Time() + us(12)), Time::never());
}

TEST(FabricPlaceTest, IsReadAsItIsWritten) {
  const FabricPlace place{.name = "0123456789abcdef", .host = 3, .claim = ~u64{0}};
  const auto read = FabricPlace::parse(place.text());
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->name, place.name);
  EXPECT_EQ(read->host, 3u);
  EXPECT_EQ(read->claim, ~u64{0});
  EXPECT_FALSE(FabricPlace::parse("somewhere").has_value());
}

TEST(FabricPlaceTest, HostsHaveAddressesOfTheirOwn) {
  EXPECT_EQ(GID::from_ipv4(fabric_address_of(0)).to_string(), "127.64.0.1");
  EXPECT_EQ(fabric_host_of(fabric_address_of(300)), 300u);
  EXPECT_FALSE(fabric_host_of(0x7f000001).has_value());
  EXPECT_FALSE(fabric_host_of(fabric_address_of(1u << 16)).has_value());
}

}  // namespace
}  // namespace verbena::host
