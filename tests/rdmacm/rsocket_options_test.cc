// rsetsockopt, rgetsockopt, rfcntl; riomap, riowrite, riounmap. rsocket(7).
#include <fcntl.h>
#include <infiniband/sa.h>
#include <netinet/tcp.h>
#include <sys/mman.h>

#include <thread>

#include "tests/rdmacm/rsocket_fixture.h"

namespace verbena::test {
namespace {

using RSocketOptionsTest = RSocketTest;

TEST_F(RSocketOptionsTest, WhatIsSetIsGivenBack) {
  const int fd = make();
  const std::array<std::array<int, 3>, 10> numbers{{{SOL_SOCKET, SO_KEEPALIVE, 1},
                                                    {SOL_SOCKET, SO_OOBINLINE, 1},
                                                    {SOL_SOCKET, SO_REUSEADDR, 1},
                                                    {IPPROTO_TCP, TCP_NODELAY, 1},
                                                    {IPPROTO_TCP, TCP_KEEPIDLE, 77},
                                                    {IPPROTO_TCP, TCP_KEEPINTVL, 5},
                                                    {IPPROTO_TCP, TCP_KEEPCNT, 3},
                                                    {IPPROTO_IPV6, IPV6_V6ONLY, 1},
                                                    {IPPROTO_IP, IP_TOS, 0x20},
                                                    {SOL_RDMA, RDMA_IOMAPSIZE, 100}}};
  for (const auto& [level, option, value] : numbers) {
    set(fd, level, option, value);
    EXPECT_EQ(get(fd, level, option), value) << level << " " << option;
  }
  set(fd, SOL_SOCKET, SO_RCVBUF, 50'000);
  EXPECT_EQ(get(fd, SOL_SOCKET, SO_RCVBUF), 100'000);  // doubled, as Linux does
  set(fd, SOL_RDMA, RDMA_SQSIZE, 100);
  EXPECT_EQ(get(fd, SOL_RDMA, RDMA_SQSIZE), 100);
  EXPECT_EQ(get(fd, SOL_SOCKET, SO_TYPE), SOCK_STREAM);
  EXPECT_EQ(get(fd, SOL_SOCKET, SO_DOMAIN), AF_INET);
  EXPECT_EQ(get(fd, SOL_SOCKET, SO_ACCEPTCONN), 0);
  linger lingering{.l_onoff = 1, .l_linger = 2}, got{};
  socklen_t size = sizeof got;
  EXPECT_EQ(rsetsockopt(fd, SOL_SOCKET, SO_LINGER, &lingering, sizeof lingering), 0);
  EXPECT_EQ(rgetsockopt(fd, SOL_SOCKET, SO_LINGER, &got, &size), 0);
  EXPECT_EQ(got.l_onoff, 1);
  EXPECT_EQ(got.l_linger, 2);
}

TEST_F(RSocketOptionsTest, ValuesOutOfRangeBecomeTheNearest) {
  const int fd = make();
  for (const int option : {RDMA_SQSIZE, RDMA_RQSIZE, RDMA_INLINE, RDMA_IOMAPSIZE}) {
    for (const int wanted : {-5, 0, 1 << 30}) {
      set(fd, SOL_RDMA, option, wanted);
      EXPECT_GE(get(fd, SOL_RDMA, option), 0);
      EXPECT_LE(get(fd, SOL_RDMA, option), 1 << 16);
    }
  }
  const auto [client, server] = connect([](int each) {
    for (const int option : {RDMA_SQSIZE, RDMA_RQSIZE, RDMA_INLINE, RDMA_IOMAPSIZE})
      set(each, SOL_RDMA, option, 1 << 30);
    set(each, SOL_SOCKET, SO_SNDBUF, -1);
  });
  send_all(client, "x");
  EXPECT_EQ(receive_all(server, 1), "x");
}

TEST_F(RSocketOptionsTest, BadOnesAreRefused) {
  const int fd = make();
  int value = 0;
  socklen_t size = sizeof value;
  EXPECT_EQ(rsetsockopt(fd, SOL_SOCKET, 9999, &value, size), -1);
  EXPECT_EQ(errno, ENOPROTOOPT);
  EXPECT_EQ(rgetsockopt(fd, 9999, 1, &value, &size), -1);
  EXPECT_EQ(errno, ENOPROTOOPT);
  EXPECT_EQ(rsetsockopt(fd, SOL_SOCKET, SO_RCVBUF, nullptr, size), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(rsetsockopt(fd, SOL_SOCKET, SO_RCVBUF, &value, 1), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rsetsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &value, size), -1);
  EXPECT_EQ(errno, EINVAL);
  const auto [client, server] = connect();
  EXPECT_EQ(rsetsockopt(client, SOL_RDMA, RDMA_SQSIZE, &value, size), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(RSocketOptionsTest, Flags) {
  const int fd = make(SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC);
  EXPECT_EQ(rfcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
  EXPECT_EQ(rfcntl(fd, F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(rfcntl(fd, F_SETFL, O_RDWR), 0);
  EXPECT_EQ(rfcntl(fd, F_GETFL) & O_NONBLOCK, 0);
}

TEST_F(RSocketOptionsTest, TheRouteOfAConnection) {
  const auto [client, server] = connect();
  ibv_path_data route{};
  socklen_t size = sizeof route;
  ASSERT_EQ(rgetsockopt(client, SOL_RDMA, RDMA_ROUTE, &route, &size), 0);
  EXPECT_EQ(size, sizeof route);
  EXPECT_EQ(route.path.sgid.raw[10], 0xff);  // ::ffff:127.x.y.z
  EXPECT_EQ(get(client, IPPROTO_TCP, TCP_MAXSEG) % 256, 0);
  size = 3;
  EXPECT_EQ(rgetsockopt(client, SOL_RDMA, RDMA_ROUTE, &route, &size), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(RSocketOptionsTest, KeepalivesDisturbNothing) {
  const auto [client, server] = connect([](int fd) {
    set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 1);
  });
  set(client, SOL_SOCKET, SO_KEEPALIVE, 1);
  EXPECT_EQ(poll_one(client, POLLIN, 1600), 0);  // while it sends one
  send_all(client, "x");
  EXPECT_EQ(receive_all(server, 1), "x");
}

// --- mapped buffers

class RSocketMappingTest : public RSocketTest {
 protected:
  Ends connect_with_maps(int count) {
    return connect([count](int fd) { set(fd, SOL_RDMA, RDMA_IOMAPSIZE, count); });
  }
  // A message after which `to` knows the mappings of `from`, and has everything sent before.
  static void tell(int from, int to) {
    send_all(from, "m");
    EXPECT_EQ(receive_all(to, 1), "m");
  }
  static ssize_t write(int fd, const std::string& text, off_t offset) {
    return static_cast<ssize_t>(riowrite(fd, text.data(), text.size(), offset, 0));
  }
};

TEST_F(RSocketMappingTest, WritesGoStraightToTheBuffer) {
  const auto [client, server] = connect_with_maps(1);
  std::string memory(300'000, '.');
  EXPECT_EQ(riomap(server, memory.data(), memory.size(), PROT_WRITE, 0, 1000), 1000);
  tell(server, client);
  const std::string all = text(memory.size());
  EXPECT_EQ(write(client, all, 1000), static_cast<ssize_t>(all.size()));
  EXPECT_EQ(write(client, "END", 1000 + 299'997), 3);
  tell(client, server);
  EXPECT_TRUE(memory == all.substr(0, 299'997) + "END");
  EXPECT_EQ(riounmap(server, memory.data(), memory.size()), 0);
}

TEST_F(RSocketMappingTest, OnlyWhatIsMappedIsWritten) {
  const auto [client, server] = connect_with_maps(2);
  std::string memory(64, '.');
  EXPECT_EQ(write(client, "x", 0), 0);  // nothing is
  EXPECT_EQ(riomap(server, memory.data(), 32, PROT_WRITE, 0, 100), 100);
  tell(server, client);
  EXPECT_EQ(write(client, "x", 99), 0);
  EXPECT_EQ(write(client, "x", 132), 0);
  EXPECT_EQ(write(client, std::string(40, 'x'), 120), 12);
  tell(client, server);
  EXPECT_EQ(memory, std::string(20, '.') + std::string(12, 'x') + std::string(32, '.'));
}

TEST_F(RSocketMappingTest, AddressesAreOffsetsWhereNoneIsGiven) {
  const auto [client, server] = connect_with_maps(1);
  std::string memory(16, '.');
  const off_t at = riomap(server, memory.data(), memory.size(), PROT_WRITE, 0, -1);
  EXPECT_EQ(at, reinterpret_cast<off_t>(memory.data()));
  tell(server, client);
  EXPECT_EQ(write(client, "hello", at + 2), 5);
  tell(client, server);
  EXPECT_EQ(memory, "..hello.........");
}

TEST_F(RSocketMappingTest, APlaceInTheTableIsUsedAgain) {
  const auto [client, server] = connect_with_maps(1);
  std::string a(16, '.'), b(16, '.');
  EXPECT_EQ(riomap(server, a.data(), a.size(), PROT_WRITE, 0, 0), 0);
  EXPECT_EQ(riomap(server, b.data(), b.size(), PROT_WRITE, 0, 0), -1);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(riounmap(server, a.data(), a.size()), 0);
  EXPECT_EQ(riounmap(server, a.data(), a.size()), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(riomap(server, b.data(), b.size(), PROT_WRITE, 0, 0), 0);
  tell(server, client);
  EXPECT_EQ(write(client, "b", 0), 1);
  tell(client, server);
  EXPECT_EQ(b[0], 'b');
}

TEST_F(RSocketMappingTest, BadOnesAreRefused) {
  const auto [client, server] = connect_with_maps(0);
  std::string memory(16, '.');
  EXPECT_EQ(riomap(server, memory.data(), memory.size(), PROT_WRITE, 0, 0), -1);
  EXPECT_EQ(errno, ENOMEM);  // the peer has no table
  EXPECT_EQ(riomap(server, memory.data(), memory.size(), PROT_READ, 0, 0), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(riomap(server, memory.data(), memory.size(), PROT_NONE, 0, 5), 5);
  EXPECT_EQ(riounmap(server, memory.data(), memory.size()), 0);
  const int fd = make();
  EXPECT_EQ(riomap(fd, memory.data(), memory.size(), PROT_WRITE, 0, 0), -1);
  EXPECT_EQ(errno, EINVAL);
}

}  // namespace
}  // namespace verbena::test
