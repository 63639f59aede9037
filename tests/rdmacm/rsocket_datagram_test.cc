// Datagram rsockets. rsocket(7).
#include <arpa/inet.h>
#include <unistd.h>

#include <thread>

#include "tests/rdmacm/rsocket_fixture.h"

namespace verbena::test {
namespace {

class RSocketDatagramTest : public RSocketTest {
 protected:
  int make_bound() {
    const int fd = make(SOCK_DGRAM);
    sockaddr_in here = address(own_address(), 0);
    EXPECT_EQ(rbind(fd, any(here), sizeof here), 0) << strerror(errno);
    return fd;
  }
  static ssize_t send_to(int fd, const std::string& text, sockaddr_in to) {
    return rsendto(fd, text.data(), text.size(), 0, any(to), sizeof to);
  }
  struct Datagram {
    std::string text;
    sockaddr_in from{};
  };
  static Datagram receive(int fd, int flags = 0) {
    Datagram got{.text = std::string(4096, '\0')};
    socklen_t size = sizeof got.from;
    EXPECT_EQ(poll_one(fd, POLLIN), POLLIN);
    const ssize_t n =
        rrecvfrom(fd, got.text.data(), got.text.size(), flags | MSG_DONTWAIT, any(got.from), &size);
    got.text.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
    return got;
  }
};

TEST_F(RSocketDatagramTest, ThereAndBackFirstByUDPThenByUD) {
  const int a = make_bound(), b = make_bound();
  for (const std::string each : {"first", "second", "third"}) {
    EXPECT_EQ(send_to(a, each, name_of(b)), static_cast<ssize_t>(each.size()));
    const Datagram got = receive(b);
    EXPECT_EQ(got.text, each);
    EXPECT_EQ(got.from.sin_port, name_of(a).sin_port);
    EXPECT_EQ(got.from.sin_addr.s_addr, name_of(a).sin_addr.s_addr);
    EXPECT_EQ(send_to(b, each + " back", got.from), static_cast<ssize_t>(each.size() + 5));
    EXPECT_EQ(receive(a).text, each + " back");
  }
}

TEST_F(RSocketDatagramTest, ConnectedOnesNeedNoAddress) {
  const int a = make(SOCK_DGRAM), b = make_bound();
  sockaddr_in there = name_of(b), peer{};
  socklen_t size = sizeof peer;
  EXPECT_EQ(rgetpeername(a, any(peer), &size), -1);
  EXPECT_EQ(errno, ENOTCONN);
  ASSERT_EQ(rconnect(a, any(there), sizeof there), 0) << strerror(errno);
  EXPECT_EQ(rgetpeername(a, any(peer), &size), 0);
  EXPECT_EQ(peer.sin_port, there.sin_port);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(rsend(a, "hello", 5, 0), 5);
    const Datagram got = receive(b);
    EXPECT_EQ(got.text, "hello");
    EXPECT_EQ(send_to(b, "there", got.from), 5);
    EXPECT_EQ(receive(a).text, "there");
  }
}

TEST_F(RSocketDatagramTest, BoundariesAreKept) {
  const int a = make_bound(), b = make_bound();
  ASSERT_EQ(send_to(a, "x", name_of(b)), 1);
  EXPECT_EQ(receive(b).text, "x");
  EXPECT_EQ(send_to(a, "", name_of(b)), 0);
  EXPECT_EQ(send_to(a, "long one", name_of(b)), 8);
  EXPECT_EQ(receive(b).text, "");
  char byte = 0;
  EXPECT_EQ(receive(b, MSG_PEEK).text, "long one");
  EXPECT_EQ(rrecv(b, &byte, 1, 0), 1);  // the rest is gone
  EXPECT_EQ(byte, 'l');
  EXPECT_EQ(rrecv(b, &byte, 1, MSG_DONTWAIT), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(RSocketDatagramTest, SizesUpToTheLimit) {
  const int a = make_bound(), b = make_bound();
  for (const std::size_t size : {0, 1, 64, 65, 1000, 2040}) {
    const std::string all = text(size);
    EXPECT_EQ(send_to(a, all, name_of(b)), static_cast<ssize_t>(size));
    EXPECT_EQ(receive(b).text, all) << size;
  }
  EXPECT_EQ(send_to(a, text(2041), name_of(b)), -1);
  EXPECT_EQ(errno, EMSGSIZE);
}

TEST_F(RSocketDatagramTest, MoreThanFitsIsLostAndNothingElseHappens) {
  const int a = make_bound(), b = make_bound();
  ASSERT_EQ(send_to(a, "first", name_of(b)), 5);
  EXPECT_EQ(receive(b).text, "first");
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(send_to(a, text(500), name_of(b)), 500);
  int got = 0;
  while (poll_one(b, POLLIN, 100) == POLLIN) {
    EXPECT_EQ(receive(b).text, text(500));
    ++got;
  }
  EXPECT_GT(got, 0);
  EXPECT_EQ(send_to(a, "after", name_of(b)), 5);
  EXPECT_EQ(receive(b).text, "after");
}

TEST_F(RSocketDatagramTest, WhatIsNoIntroductionIsDropped) {
  const int b = make_bound();
  sockaddr_in there = name_of(b);
  const int stranger = ::socket(AF_INET, SOCK_DGRAM, 0);
  std::string tag("\x55\x55\x55\x55\x04\x00\x10\x00\x00\x00\x00\x09\x7f\x00\x00\x01", 16);
  for (std::size_t size = 0; size < tag.size(); ++size)
    ::sendto(stranger, tag.data(), size, 0, any(there), sizeof there);
  tag[4] = 6;  // IPv6, with the length of IPv4
  ::sendto(stranger, tag.data(), tag.size(), 0, any(there), sizeof there);
  EXPECT_EQ(poll_one(b, POLLIN, 50), 0);
  const int a = make_bound();
  EXPECT_EQ(send_to(a, "real", there), 4);
  EXPECT_EQ(receive(b).text, "real");
  ::close(stranger);
}

TEST_F(RSocketDatagramTest, ABlockingReceiveIsWokenByUDPAndByClose) {
  const int a = make_bound(), b = make_bound();
  std::thread receiver([&] {
    char byte = 0;
    EXPECT_EQ(rrecv(b, &byte, 1, 0), 1);
    EXPECT_LE(rrecv(b, &byte, 1, 0), 0);
  });
  EXPECT_EQ(send_to(a, "x", name_of(b)), 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  close(b);
  receiver.join();
}

TEST_F(RSocketDatagramTest, CallsThatDoNotFitAreRefused) {
  const int fd = make(SOCK_DGRAM);
  sockaddr_in odd{};
  odd.sin_family = AF_UNIX;
  const auto expect = [](ssize_t result, int error) {
    EXPECT_EQ(result, -1);
    EXPECT_EQ(errno, error) << strerror(errno);
  };
  expect(rsend(fd, "x", 1, 0), EDESTADDRREQ);
  expect(rsendto(fd, "x", 1, 0, any(odd), sizeof odd), EAFNOSUPPORT);
  expect(rsendto(fd, "x", 1, 0, any(odd), 2), EINVAL);
  expect(rlisten(fd, 1), EOPNOTSUPP);
  expect(raccept(fd, nullptr, nullptr), EOPNOTSUPP);
  expect(rshutdown(fd, SHUT_RDWR), ENOTCONN);
  expect(riomap(fd, &odd, sizeof odd, PROT_WRITE, 0, 0), EOPNOTSUPP);
  set(fd, SOL_SOCKET, SO_RCVBUF, 100'000);
  EXPECT_EQ(get(fd, SOL_SOCKET, SO_RCVBUF), 200'000);
  set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  EXPECT_EQ(get(fd, SOL_SOCKET, SO_REUSEADDR), 1);
}

}  // namespace
}  // namespace verbena::test
