#include "host/links/multicast_groups.h"

#include <gtest/gtest.h>
#include <net/if.h>
#include <poll.h>
#include <unistd.h>

#include "host/links/source_ports.h"
#include "host/network/socket_address.h"
#include "wire/roce/icrc.h"

namespace verbena::host {
namespace {

class MulticastGroupsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(first.open().has_value());
    ASSERT_TRUE(second.open().has_value());
    Expected<std::unique_ptr<SourcePorts>> opened = SourcePorts::open(own, loopback);
    ASSERT_TRUE(opened.has_value());
    ports = std::move(*opened);
  }
  void send(const GID& destination) {
    const std::array<u8, 20> bytes{};
    const SocketAddress to(destination, kRoCEv2Port, loopback);
    ASSERT_EQ(::sendto(ports->first().fd(), bytes.data(), bytes.size(), 0, to.data(), to.size()),
              static_cast<ssize_t>(bytes.size()));
  }
  // Those that come of what was sent; on the loopback interface they are there at once.
  std::vector<IngressFrame> received(MulticastGroups& groups) {
    std::vector<IngressFrame> frames;
    LinkCounters counters;
    IngressFrame frame;
    while (groups.receive(counters))
      while (groups.poll_frame(frame)) frames.push_back(frame);
    return frames;
  }
  static GID own_group(u32 last) {
    const u32 pid = static_cast<u32>(::getpid());
    return GID::from_ipv4(0xef000000u | (pid & 0xffff) << 8 | last);
  }

  const GID own = GID::from_ipv4(0x7f000001u + ((static_cast<u32>(::getpid()) & 0xffff) << 8));
  const u32 loopback = ::if_nametoindex("lo");
  const GID group = own_group(1), other = own_group(2);
  MulticastGroups first, second;
  std::unique_ptr<SourcePorts> ports;
};

TEST_F(MulticastGroupsTest, EveryMemberGetsOneCopy) {
  ASSERT_TRUE(first.join(group, loopback).has_value());
  ASSERT_TRUE(second.join(group, loopback).has_value());
  ASSERT_TRUE(second.join(other, loopback).has_value());
  ports->first().set_hop_limit(9);  // that is for unicast
  send(group);
  for (MulticastGroups* const groups : {&first, &second}) {
    pollfd waiting{.fd = groups->fd(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&waiting, 1, 1000), 1);
    const std::vector<IngressFrame> frames = received(*groups);
    ASSERT_EQ(frames.size(), 1u);
    EXPECT_EQ(frames[0].destination, group);
    EXPECT_EQ(frames[0].source, own);
    EXPECT_EQ(frames[0].hop_limit, 64);
  }
}

TEST_F(MulticastGroupsTest, OnlyOfGroupsThatWereJoinedAndNotLeft) {
  ASSERT_TRUE(first.join(group, loopback).has_value());
  send(other);
  EXPECT_TRUE(received(first).empty());
  first.leave(group);
  send(group);
  EXPECT_TRUE(received(first).empty());
  ASSERT_TRUE(first.join(group, loopback).has_value());
  send(group);
  EXPECT_EQ(received(first).size(), 1u);
}

TEST_F(MulticastGroupsTest, NotOnAnInterfaceThatIsNotThere) {
  EXPECT_FALSE(first.join(group, 0x7fffffff).has_value());
  EXPECT_TRUE(received(first).empty());
}

}  // namespace
}  // namespace verbena::host
