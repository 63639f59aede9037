#include "host/doctor/port_holder.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/network/socket_address.h"
#include "host/os/kernel_socket.h"

namespace verbena::host {
namespace {

constexpr const char* kIPv4 =
    "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode ref pointer drops\n"
    "  301: 5B00007F:12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000  1000        0 "
    "4711 2 0000000000000000 0\n"
    "  302: 00000000:12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 "
    "4712 2 0000000000000000 0\n"
    "  303: 0100007F:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 "
    "4713 2 0000000000000000 0\n";
constexpr const char* kIPv6 =
    "  1: 00000000000000000000000001000000:12B7 00000000000000000000000000000000:0000 07 "
    "00000000:00000000 00:00000000 00000000  1001 0 4714 2 0000000000000000 0\n"
    "  2: zz:12B7\n  3:\n\n";

TEST(PortHolderTest, IPv4) {
  const std::vector<UDPSocket> sockets = udp_sockets_in(kIPv4, 4791);
  ASSERT_EQ(sockets.size(), 2u);
  EXPECT_EQ(
      sockets[0],
      (UDPSocket{.address = *GID::parse("127.0.0.91"), .port = 4791, .user = 1000, .inode = 4711}));
  EXPECT_TRUE(sockets[1].address.is_zero());
}

TEST(PortHolderTest, IPv6AndLinesThatAreNone) {
  const std::vector<UDPSocket> sockets = udp_sockets_in(kIPv6, 4791);
  ASSERT_EQ(sockets.size(), 1u);
  EXPECT_EQ(sockets[0].address, GID::parse("::1"));
  EXPECT_EQ(sockets[0].user, 1001u);
}

TEST(PortHolderTest, FindsThisProcess) {
  const GID address = *GID::parse("127.0.0.84");
  const Descriptor socket = open_kernel_socket(AF_INET, SOCK_DGRAM);
  SocketAddress local(address, 0, 0);
  ASSERT_EQ(::bind(socket.get(), local.data(), local.size()), 0);
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  ASSERT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &size), 0);
  const std::vector<PortHolder> holders = holders_of_udp_port(address, port_of(bound));
  ASSERT_EQ(holders.size(), 1u);
  EXPECT_EQ(holders[0].processes, std::vector{::getpid()});
  EXPECT_EQ(holders[0].socket.user, ::getuid());
}

}  // namespace
}  // namespace verbena::host
