#include "host/network/local_address.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace verbena::host {
namespace {

GID gid(const char* text) { return *GID::parse(text); }

Interface loopback() {
  return {.name = "lo",
          .index = 1,
          .mtu = 65536,
          .up = true,
          .loopback = true,
          .mac = {},
          .link_speed_mbps = 0,
          .addresses = {{gid("127.0.0.1"), 8}, {gid("::1"), 128}}};
}

Interface ethernet(const char* name, u32 index, std::vector<InterfaceAddress> addresses) {
  return {.name = name,
          .index = index,
          .mtu = 1500,
          .up = true,
          .loopback = false,
          .mac = {0x02, 0xfc, 0x00, 0x00, 0x00, 0x01},
          .link_speed_mbps = 10000,
          .addresses = std::move(addresses)};
}

InterfaceTable usual() {
  return {.interfaces = {loopback(), ethernet("docker0", 2, {{gid("172.17.0.1"), 16}}),
                         ethernet("eth0", 3,
                                  {{gid("192.0.2.2"), 24},
                                   {gid("2001:db8::2"), 64},
                                   {gid("fe80::fc:ff:fe00:1"), 64}})},
          .default_route_interface = "eth0",
          .host_id = "a"};
}

TEST(LocalAddressTest, DefaultIsTheInterfaceOfTheDefaultRoute) {
  const auto chosen = choose_local_addresses("", usual());
  ASSERT_TRUE(chosen.has_value());
  ASSERT_EQ(chosen->size(), 1u);
  const LocalAddress& address = chosen->front();
  EXPECT_EQ(address.device_name, "verbena0");
  EXPECT_EQ(address.interface, "eth0");
  EXPECT_EQ(address.interface_index, 3u);
  EXPECT_EQ(address.mtu, 1500u);
  EXPECT_EQ(address.ipv4, gid("192.0.2.2"));
  EXPECT_EQ(address.ipv6, gid("fe80::fc:ff:fe00:1"));  // link-local before global
  EXPECT_EQ(address.node_guid, 0x00fc00fffe000001u);   // EUI-64, universal bit inverted
  EXPECT_EQ(address.link_speed_mbps, 10000u);
}

TEST(LocalAddressTest, TheOtherAddressesOfAnInterfaceFollowUpToALimit) {
  InterfaceTable table = usual();
  EXPECT_EQ(choose_local_addresses("", table)->front().others,
            (std::vector<GID>{gid("2001:db8::2")}));
  for (u32 i = 0; i < 20; ++i)
    table.interfaces[2].addresses.push_back({GID::from_ipv4(0x0a000001 + i), 24});
  const LocalAddress address = choose_local_addresses("eth0", table)->front();
  EXPECT_EQ(address.others.size(), LocalAddress::kMaxOthers);
  EXPECT_EQ(address.all().size(), LocalAddress::kMaxOthers + 2);
  EXPECT_EQ(address.all()[3], gid("10.0.0.1"));
  EXPECT_TRUE(choose_local_addresses("10.0.0.1", table)->front().others.empty());
}

TEST(LocalAddressTest, WithoutADefaultRouteTheFirstOtherInterface) {
  InterfaceTable table = usual();
  table.default_route_interface = "";
  EXPECT_EQ(choose_local_addresses("", table)->front().interface, "docker0");
  table.interfaces[1].up = false;
  EXPECT_EQ(choose_local_addresses("", table)->front().interface, "eth0");
}

TEST(LocalAddressTest, LoopbackWhenThereIsNothingElse) {
  const InterfaceTable table{
      .interfaces = {loopback()}, .default_route_interface = "", .host_id = "a"};
  const auto chosen = choose_local_addresses("", table);
  ASSERT_TRUE(chosen.has_value());
  EXPECT_EQ(chosen->front().ipv4, gid("127.0.0.1"));
  EXPECT_EQ(chosen->front().ipv6, gid("::1"));
  EXPECT_NE(chosen->front().node_guid, 0u);
}

TEST(LocalAddressTest, NothingUsableIsAnError) {
  const auto chosen = choose_local_addresses("", InterfaceTable{});
  ASSERT_FALSE(chosen.has_value());
  EXPECT_EQ(chosen.error().error, EADDRNOTAVAIL);
  EXPECT_EQ(chosen.error().message.find("no usable address"), 0u);
}

TEST(LocalAddressTest, AnAddressStandsAlone) {
  const auto chosen = choose_local_addresses("192.0.2.2,2001:db8::2", usual());
  ASSERT_TRUE(chosen.has_value());
  ASSERT_EQ(chosen->size(), 2u);
  EXPECT_EQ((*chosen)[0].ipv4, gid("192.0.2.2"));
  EXPECT_FALSE((*chosen)[0].ipv6.has_value());
  EXPECT_EQ((*chosen)[1].device_name, "verbena1");
  EXPECT_FALSE((*chosen)[1].ipv4.has_value());
  EXPECT_EQ((*chosen)[1].ipv6, gid("2001:db8::2"));
}

TEST(LocalAddressTest, InterfacesByName) {
  const auto chosen = choose_local_addresses("docker0, lo", usual());
  ASSERT_TRUE(chosen.has_value());
  ASSERT_EQ(chosen->size(), 2u);
  EXPECT_EQ((*chosen)[0].ipv4, gid("172.17.0.1"));
  EXPECT_FALSE((*chosen)[0].ipv6.has_value());
  EXPECT_EQ((*chosen)[1].interface, "lo");
}

TEST(LocalAddressTest, AllOfTheLoopbackNetworkIsThisHost) {
  const auto chosen = choose_local_addresses("127.0.0.2,127.1.2.3", usual());
  ASSERT_TRUE(chosen.has_value());
  EXPECT_EQ((*chosen)[1].ipv4, gid("127.1.2.3"));
  EXPECT_NE((*chosen)[0].node_guid, (*chosen)[1].node_guid);
}

TEST(LocalAddressTest, AnAddressThatIsBeingCheckedIsNotUsed) {
  InterfaceTable table = usual();
  table.interfaces[2].addresses[2].usable = false;
  EXPECT_EQ(choose_local_addresses("", table)->front().ipv6, gid("2001:db8::2"));
}

struct Wrong {
  const char* choice;
  int error;
  const char* message;
};

TEST(LocalAddressTest, WrongChoicesAreToldInOneLine) {
  InterfaceTable table = usual();
  table.interfaces.push_back(ethernet("down0", 4, {{gid("198.51.100.1"), 24}}));
  table.interfaces.back().up = false;
  table.interfaces.push_back(ethernet("bare0", 5, {}));
  table.interfaces.push_back(ethernet("small0", 6, {{gid("203.0.113.1"), 24}}));
  table.interfaces.back().mtu = 296;
  for (const Wrong& wrong : {
           Wrong{"eth7", ENODEV, "neither an IP address nor an interface"},
           Wrong{"192.0.2.3", EADDRNOTAVAIL, "is not an address of this host"},
           Wrong{"::1:2", EADDRNOTAVAIL, "is not an address of this host"},
           Wrong{"down0", ENETDOWN, "is down"},
           Wrong{"198.51.100.1", ENETDOWN, "is down"},
           Wrong{"bare0", EADDRNOTAVAIL, "has no IP address"},
           Wrong{"small0", EMSGSIZE, "MTU of 296; RoCE needs 352"},
           Wrong{"eth0,", EINVAL, "empty element"},
           Wrong{",", EINVAL, "empty element"},
           Wrong{"eth0,192.0.2.2", EINVAL, "a second time"},
       }) {
    const auto chosen = choose_local_addresses(wrong.choice, table);
    ASSERT_FALSE(chosen.has_value()) << wrong.choice;
    EXPECT_EQ(chosen.error().error, wrong.error) << wrong.choice;
    EXPECT_NE(chosen.error().message.find(wrong.message), std::string::npos)
        << chosen.error().message;
    EXPECT_EQ(chosen.error().message.find('\n'), std::string::npos);
  }
}

TEST(LocalAddressTest, DefaultRouteWithTheLowestMetric) {
  constexpr const char* kRoutes =
      "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
      "wlan0\t00000000\t0100A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n"
      "eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
      "tun0\t00000000\t00000000\t0000\t0\t0\t1\t00000000\t0\t0\t0\n"
      "tun1\t00000000\t00000000\t0001\t0\t0\t0\t00000080\t0\t0\t0\n"
      "eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
  EXPECT_EQ(default_route_interface(kRoutes), "eth0");
  EXPECT_EQ(default_route_interface(""), "");
  EXPECT_EQ(default_route_interface("Iface\tDestination\nnonsense\n\n"), "");
}

TEST(LocalAddressTest, ThisHostHasLoopback) {
  const auto chosen = choose_local_addresses("127.0.0.1");
  ASSERT_TRUE(chosen.has_value()) << chosen.error().message;
  EXPECT_GT(chosen->front().mtu, 0u);
  EXPECT_GT(chosen->front().interface_index, 0u);
}

}  // namespace
}  // namespace verbena::host
