// Tests which connections a function may open, and how the NIC's descriptors are divided.
#include "host/nic/nic_stream_filter.h"

#include <gtest/gtest.h>

#include <cstring>

#include "host/nic/nic_stream_limits.h"

namespace verbena::host {
namespace {

constexpr u16 kFirstPort = 1024, kPort = 7174;
const GID kOwnIPv4 = GID::from_ipv4(0x0a000001), kOwnIPv6 = *GID::parse("2001:db8::1");

NICStreamRefusal check(NICStreamCall call, const TCPTuple& ends) {
  const NICStreamFilter filter({kOwnIPv4, kOwnIPv6});
  return filter.check({.call = call, .ends = ends}, kFirstPort);
}
NICStreamRefusal connect_to_address(const char* remote, const GID& local = kOwnIPv4) {
  return check(NICStreamCall::kConnect, {local, *GID::parse(remote), 0, kPort});
}

TEST(NICStreamFilterTest, OnlyOwnAddresses) {
  for (const NICStreamCall call : {NICStreamCall::kListen, NICStreamCall::kConnect})
    for (const char* const other : {"10.0.0.2", "0.0.0.0", "::", "127.0.0.1", "2001:db8::2"})
      EXPECT_EQ(check(call, {*GID::parse(other), GID::from_ipv4(0x0a000009), kPort, kPort}),
                NICStreamRefusal::kSource)
          << other;
  EXPECT_EQ(check(NICStreamCall::kListen, {.local = kOwnIPv4, .local_port = kPort}),
            NICStreamRefusal::kNone);
  EXPECT_EQ(check(NICStreamCall::kListen, {.local = kOwnIPv6, .local_port = 0}),
            NICStreamRefusal::kNone);
}

TEST(NICStreamFilterTest, PortsThatNeedAPrivilege) {
  for (const NICStreamCall call : {NICStreamCall::kListen, NICStreamCall::kConnect}) {
    TCPTuple ends{kOwnIPv4, GID::from_ipv4(0x0a000009), kFirstPort - 1, kPort};
    EXPECT_EQ(check(call, ends), NICStreamRefusal::kSource);
    ends.local_port = kFirstPort;
    EXPECT_EQ(check(call, ends), NICStreamRefusal::kNone);
  }
}

TEST(NICStreamFilterTest, OnlyHostsOfTheNetwork) {
  for (const char* const remote :
       {"0.0.0.0", "::", "127.0.0.1", "127.9.9.9", "::1", "239.1.1.1", "ff02::1", "2001:db8::2"})
    EXPECT_EQ(connect_to_address(remote), NICStreamRefusal::kDestination) << remote;
  EXPECT_EQ(connect_to_address("10.9.9.9"), NICStreamRefusal::kNone);
  EXPECT_EQ(connect_to_address("2001:db8::2", kOwnIPv6), NICStreamRefusal::kNone);
  EXPECT_EQ(connect_to_address("::1", kOwnIPv6), NICStreamRefusal::kDestination);
  EXPECT_EQ(connect_to_address("10.9.9.9", kOwnIPv6), NICStreamRefusal::kDestination);
}

TEST(NICStreamFilterTest, AFunctionOnTheLoopbackStaysThere) {
  const GID own = *GID::parse("127.0.0.5");
  const NICStreamFilter filter({own});
  const auto check_to = [&](const char* remote) {
    return filter.check(
        {.call = NICStreamCall::kConnect, .ends = {own, *GID::parse(remote), 0, kPort}},
        kFirstPort);
  };
  EXPECT_EQ(check_to("127.0.0.6"), NICStreamRefusal::kNone);
  EXPECT_EQ(check_to("0.0.0.0"), NICStreamRefusal::kDestination);
}

TEST(NICStreamRequestTest, WhatIsNone) {
  const auto decode = [](const NICStreamRequest& request, std::size_t size) {
    std::vector<u8> bytes(sizeof(request) + 1);
    std::memcpy(bytes.data(), &request, sizeof(request));
    return NICStreamRequest::decode(std::span(bytes).first(size)).has_value();
  };
  constexpr std::size_t kSize = sizeof(NICStreamRequest);
  EXPECT_TRUE(decode({}, kSize));
  EXPECT_FALSE(decode({}, kSize - 1));
  EXPECT_FALSE(decode({}, kSize + 1));
  EXPECT_FALSE(decode({.version = kNICVersion - 1}, kSize));
  for (const u32 call : {0u, 4u, ~0u})
    EXPECT_FALSE(decode({.call = static_cast<NICStreamCall>(call)}, kSize)) << call;
}

NICConfig config_with(std::initializer_list<std::optional<u32>> streams) {
  NICConfig config;
  for (const std::optional<u32>& limit : streams)
    config.functions.push_back({.name = "f", .address = "10.0.0.1", .max_streams = limit});
  return config;
}

TEST(NICStreamLimitsTest, EachFunctionHasItsPart) {
  EXPECT_EQ(share_of_streams(config_with({{}, {}}), 4000).value(), 500u);
  EXPECT_EQ(share_of_streams(config_with({{}, 400, {}}), 4000).value(), 300u);
  EXPECT_EQ(share_of_streams(config_with({{}}), 1 << 20).value(), 1024u);
  EXPECT_EQ(share_of_streams(config_with({1000, 0}), 4000).value(), 0u);
}

TEST(NICStreamLimitsTest, MoreThanThereAreIsRefused) {
  const auto share = share_of_streams(config_with({900, {}, 101}), 4000);
  ASSERT_FALSE(share.has_value());
  EXPECT_EQ(share.error().message,
            "streams: the functions have 1001 together; with 4000 descriptors (ulimit -n) the NIC "
            "has 1000");
}

}  // namespace
}  // namespace verbena::host
