// Stream rsockets: connections, data in all sizes, and their ends. rsocket(7).
#include <fcntl.h>
#include <pthread.h>
#include <sys/uio.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <thread>
#include <utility>

#include "tests/rdmacm/rsocket_fixture.h"

namespace verbena::test {
namespace {

class RSocketStreamTest : public RSocketTest {
 protected:
  static void expect_end(int fd) {
    char byte = 0;
    errno = 0;  // and it stays: programs take an end with EAGAIN for none
    EXPECT_NE(poll_one(fd, POLLIN) & POLLIN, 0);
    EXPECT_EQ(rrecv(fd, &byte, 1, 0), 0) << strerror(errno);
    EXPECT_EQ(errno, 0);
  }
};

// The sum of the lengths wraps to 8.
TEST_F(RSocketStreamTest, LengthsThatDoNotFitTogetherAreRefused) {
  const auto [client, server] = connect();
  std::array<char, 16> bytes{};
  const std::array<iovec, 2> parts = {iovec{bytes.data(), 16}, iovec{bytes.data(), SIZE_MAX - 7}};
  errno = 0;
  EXPECT_EQ(rwritev(client, parts.data(), 2), -1);
  EXPECT_EQ(errno, EINVAL);
  errno = 0;
  EXPECT_EQ(rreadv(server, parts.data(), 2), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(RSocketStreamTest, BytesArriveBothWays) {
  const auto [client, server] = connect();
  for (const std::size_t size : {1, 63, 64, 65, 2048, 4097, 100'000}) {
    const std::string there = text(size), back = text(size, 7);
    send_all(client, there);
    EXPECT_EQ(receive_all(server, size), there) << size;
    send_all(server, back);
    EXPECT_EQ(receive_all(client, size), back) << size;
  }
}

TEST_F(RSocketStreamTest, LargeTransfersGoThroughTheSmallestBuffersAndQueues) {
  const auto [client, server] = connect([](int fd) {
    set(fd, SOL_SOCKET, SO_SNDBUF, 1);
    set(fd, SOL_SOCKET, SO_RCVBUF, 1);
    set(fd, SOL_RDMA, RDMA_SQSIZE, 1);
    set(fd, SOL_RDMA, RDMA_RQSIZE, 1);
    set(fd, SOL_RDMA, RDMA_INLINE, 0);
  });
  const std::string all = text(1'000'000);
  std::thread sender([&, fd = client] { send_all(fd, all); });
  EXPECT_TRUE(receive_all(server, all.size()) == all);
  sender.join();
}

TEST_F(RSocketStreamTest, ThreadsSendAndReceiveOnOneSocketAtOnce) {
  const auto ends = connect();
  const std::string there = text(3'000'000), back = text(3'000'000, 5);
  std::thread a([&] { send_all(ends.client, there); });
  std::thread b([&] { send_all(ends.server, back); });
  std::string at_client;
  std::thread c([&] { at_client = receive_all(ends.client, back.size()); });
  EXPECT_TRUE(receive_all(ends.server, there.size()) == there);
  for (std::thread* thread : {&a, &b, &c}) thread->join();
  EXPECT_TRUE(at_client == back);
}

TEST_F(RSocketStreamTest, VectorsAndMessages) {
  const auto [client, server] = connect();
  std::string a = "first ", b, c = "second";
  const std::array<iovec, 3> out{{{a.data(), a.size()}, {b.data(), 0}, {c.data(), c.size()}}};
  EXPECT_EQ(rwritev(client, out.data(), 3), 12);
  std::array<char, 5> one{};
  std::array<char, 20> two{};
  const std::array<iovec, 2> in{{{one.data(), one.size()}, {two.data(), two.size()}}};
  EXPECT_EQ(rreadv(server, in.data(), 2), 12);
  EXPECT_EQ(std::string(one.data(), 5) + std::string(two.data(), 7), "first second");

  msghdr message{};
  message.msg_iov = const_cast<iovec*>(out.data());
  message.msg_iovlen = 3;
  EXPECT_EQ(rsendmsg(server, &message, 0), 12);
  sockaddr_in from{};
  message.msg_iov = const_cast<iovec*>(in.data());
  message.msg_iovlen = 2;
  message.msg_name = &from;
  message.msg_namelen = sizeof from;
  EXPECT_EQ(poll_one(client, POLLIN), POLLIN);
  EXPECT_EQ(rrecvmsg(client, &message, 0), 12);
  EXPECT_EQ(from.sin_port, name_of(server).sin_port);
}

TEST_F(RSocketStreamTest, PeekLeavesTheBytes) {
  const auto [client, server] = connect();
  send_all(client, "hello");
  std::array<char, 8> bytes{};
  EXPECT_EQ(rrecv(server, bytes.data(), 3, MSG_PEEK), 3);
  EXPECT_EQ(rrecv(server, bytes.data(), bytes.size(), MSG_PEEK), 5);
  EXPECT_EQ(receive_all(server, 5), "hello");
  EXPECT_EQ(rrecv(server, bytes.data(), 1, MSG_PEEK | MSG_DONTWAIT), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(RSocketStreamTest, WaitAllWaitsForAll) {
  const auto ends = connect();
  std::thread sender([&] {
    for (const char* part : {"ab", "cd", "ef"}) {
      send_all(ends.client, part);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  std::array<char, 6> bytes{};
  EXPECT_EQ(rrecv(ends.server, bytes.data(), 6, MSG_WAITALL), 6);
  EXPECT_EQ(std::string(bytes.data(), 6), "abcdef");
  sender.join();
}

// Calls `blocking` in a thread that gets signals until the call ends; returns its result and errno.
std::pair<ssize_t, int> under_signals(const std::function<ssize_t()>& blocking) {
  struct sigaction quiet = {}, before = {};
  quiet.sa_handler = [](int) {};  // without SA_RESTART
  sigaction(SIGUSR1, &quiet, &before);
  std::atomic<bool> ended = false;
  std::pair<ssize_t, int> outcome;
  std::thread caller([&] {
    outcome.first = blocking();
    outcome.second = errno;
    ended = true;
  });
  while (!ended) {
    pthread_kill(caller.native_handle(), SIGUSR1);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  caller.join();
  sigaction(SIGUSR1, &before, nullptr);
  return outcome;
}

TEST_F(RSocketStreamTest, ASignalEndsABlockingCall) {
  const std::pair<ssize_t, int> interrupted(-1, EINTR);
  const auto [client, server] = connect();
  char byte = 0;
  EXPECT_EQ(under_signals([&] { return rrecv(client, &byte, 1, 0); }), interrupted);
  const int listener = make_listener();
  set_blocking(listener, true);
  EXPECT_EQ(under_signals([&] { return raccept(listener, nullptr, nullptr); }), interrupted);
  const std::string much = text(100'000);
  set_blocking(client, false);
  while (rsend(client, much.data(), much.size(), 0) > 0) continue;  // until neither has room
  set_blocking(client, true);
  EXPECT_EQ(under_signals([&] { return rsend(client, much.data(), much.size(), 0); }), interrupted);
  const int datagrams = make(SOCK_DGRAM);
  sockaddr_in name = name_of(client);
  name.sin_port = 0;
  ASSERT_EQ(rbind(datagrams, reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
  EXPECT_EQ(under_signals([&] { return rrecv(datagrams, &byte, 1, 0); }), interrupted);
}

TEST_F(RSocketStreamTest, NonblockingCallsDoNotWait) {
  const auto [client, server] = connect();
  set_blocking(client, false);
  char byte = 0;
  EXPECT_EQ(rrecv(client, &byte, 1, 0), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(rrecv(server, &byte, 1, MSG_DONTWAIT), -1);
  EXPECT_EQ(errno, EAGAIN);
  const std::string much = text(100'000);
  std::string sent;
  for (;;) {  // until neither has room
    const ssize_t n = rsend(client, much.data(), much.size(), 0);
    if (n < 0) break;
    sent += much.substr(0, static_cast<std::size_t>(n));
    ASSERT_LT(sent.size(), 10'000'000U);
  }
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_TRUE(receive_all(server, sent.size()) == sent);
  EXPECT_EQ(poll_one(client, POLLOUT), POLLOUT);
}

TEST_F(RSocketStreamTest, NothingToDoIsDone) {
  const auto [client, server] = connect();
  EXPECT_EQ(rsend(client, nullptr, 0, 0), 0);
  EXPECT_EQ(rrecv(server, nullptr, 0, 0), 0);
  EXPECT_EQ(rsend(client, nullptr, 5, 0), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(rrecv(server, nullptr, 5, 0), -1);
  EXPECT_EQ(errno, EFAULT);
}

// --- ends

TEST_F(RSocketStreamTest, AfterShutdownOfWritingTheOtherWayStillWorks) {
  const auto [client, server] = connect();
  send_all(client, "last");
  EXPECT_EQ(rshutdown(client, SHUT_WR), 0);
  EXPECT_EQ(rsend(client, "x", 1, 0), -1);
  EXPECT_EQ(errno, EPIPE);
  EXPECT_EQ(receive_all(server, 4), "last");
  expect_end(server);
  send_all(server, "answer");
  EXPECT_EQ(receive_all(client, 6), "answer");
  EXPECT_EQ(rshutdown(server, SHUT_WR), 0);
  expect_end(client);
}

TEST_F(RSocketStreamTest, ShutdownOfReadingEndsReadsAtOnce) {
  const auto [client, server] = connect();
  EXPECT_EQ(rshutdown(client, SHUT_RD), 0);
  expect_end(client);
  send_all(client, "still");
  EXPECT_EQ(receive_all(server, 5), "still");
}

TEST_F(RSocketStreamTest, AClosedPeerIsAnEndAfterItsBytes) {
  const auto [client, server] = connect();
  const std::string all = text(100'000);
  send_all(client, all);
  close(client);
  EXPECT_TRUE(receive_all(server, all.size()) == all);
  expect_end(server);
  expect_end(server);
  EXPECT_NE(poll_one(server, POLLIN | POLLOUT) & POLLHUP, 0);
  EXPECT_EQ(rsend(server, "x", 1, 0), -1);
  EXPECT_EQ(errno, ECONNRESET);
}

TEST_F(RSocketStreamTest, CloseWakesThreadsThatWait) {
  const auto ends = connect();
  const int listener = make_listener();
  std::thread reader([&] {
    char byte = 0;
    EXPECT_LE(rrecv(ends.server, &byte, 1, 0), 0);
  });
  std::thread accepter([&] {
    EXPECT_EQ(raccept(listener, nullptr, nullptr), -1);
    EXPECT_EQ(errno, EBADF);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // they wait, or will not begin to
  close(ends.server);
  close(listener);
  reader.join();
  accepter.join();
}

TEST_F(RSocketStreamTest, ShutdownOfBothIsTheEndForBoth) {
  const auto [client, server] = connect();
  EXPECT_EQ(rshutdown(client, SHUT_RDWR), 0);
  expect_end(client);
  expect_end(server);
  EXPECT_EQ(rshutdown(server, SHUT_RDWR), 0);
  EXPECT_EQ(rshutdown(server, 9), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(RSocketStreamTest, WithALingerOfNothingCloseDoesNotWait) {
  const auto [client, server] = connect();
  const linger none{.l_onoff = 1, .l_linger = 0};
  EXPECT_EQ(rsetsockopt(client, SOL_SOCKET, SO_LINGER, &none, sizeof none), 0);
  close(client);
  EXPECT_NE(poll_one(server, POLLIN) & (POLLIN | POLLHUP), 0);
}

// --- connecting

TEST_F(RSocketStreamTest, BlockingConnectAndAccept) {
  const int listener = make_listener();
  sockaddr_in there = name_of(listener), from{};
  socklen_t size = sizeof from;
  const int client = make();
  std::thread connecting([&] { EXPECT_EQ(rconnect(client, any(there), sizeof there), 0); });
  const int server = raccept(listener, any(from), &size);
  connecting.join();
  ASSERT_GE(server, 0);
  EXPECT_EQ(size, sizeof from);
  EXPECT_EQ(from.sin_port, name_of(client).sin_port);
  EXPECT_EQ(from.sin_addr.s_addr, there.sin_addr.s_addr);
  EXPECT_EQ(rgetpeername(client, any(from), &size), 0);
  EXPECT_EQ(from.sin_port, there.sin_port);
  close(server);
}

TEST_F(RSocketStreamTest, NonblockingConnectSaysHowItWent) {
  const int listener = make_listener();
  sockaddr_in there = name_of(listener);
  const int client = start_connecting(listener);
  const int server = accept_from(listener);
  EXPECT_EQ(poll_one(client, POLLOUT), POLLOUT);
  EXPECT_EQ(get(client, SOL_SOCKET, SO_ERROR), 0);
  EXPECT_EQ(rconnect(client, any(there), sizeof there), 0);
  EXPECT_EQ(rconnect(client, any(there), sizeof there), -1);
  EXPECT_EQ(errno, EISCONN);
  send_all(client, "x");
  EXPECT_EQ(receive_all(server, 1), "x");
}

TEST_F(RSocketStreamTest, NobodyThereRefuses) {
  const int listener = make_listener();
  sockaddr_in there = name_of(listener);
  close(listener);
  const int client = make();
  EXPECT_EQ(rconnect(client, any(there), sizeof there), -1);
  EXPECT_EQ(errno, ECONNREFUSED);
  const int again = make_listener();  // and the socket may try another
  there = name_of(again);
  set_blocking(client, false);
  EXPECT_EQ(rconnect(client, any(there), sizeof there), -1);
  EXPECT_EQ(errno, EINPROGRESS);
  accept_from(again);
  EXPECT_EQ(poll_one(client, POLLOUT), POLLOUT);
}

TEST_F(RSocketStreamTest, ARefusalIsSeenByPollToo) {
  const int listener = make_listener();
  sockaddr_in there = name_of(listener);
  close(listener);
  const int client = make(SOCK_STREAM | SOCK_NONBLOCK);
  EXPECT_EQ(rconnect(client, any(there), sizeof there), -1);
  EXPECT_EQ(errno, EINPROGRESS);
  EXPECT_NE(poll_one(client, POLLOUT) & POLLERR, 0);
  EXPECT_EQ(get(client, SOL_SOCKET, SO_ERROR), ECONNREFUSED);
}

TEST_F(RSocketStreamTest, WhoSpeaksNoRSocketIsRejected) {
  const int listener = make_listener();
  rdma_cm_id* stranger = make_resolved(ntohs(name_of(listener).sin_port));
  make_qp(stranger);
  const std::string hello = "hello";
  rdma_conn_param param = with_data(hello);
  EXPECT_EQ(rdma_connect(stranger, &param), 0);
  expect_event(RDMA_CM_EVENT_REJECTED);
  set_blocking(listener, false);
  EXPECT_EQ(poll_one(listener, POLLIN, 0), 0);
  EXPECT_EQ(raccept(listener, nullptr, nullptr), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(RSocketStreamTest, IPv6) {
  const int listener = make(SOCK_STREAM, AF_INET6);
  sockaddr_in6 here = address6("::1", 0);
  ASSERT_EQ(rbind(listener, any(here), sizeof here), 0) << strerror(errno);
  ASSERT_EQ(rlisten(listener, 1), 0);
  socklen_t size = sizeof here;
  ASSERT_EQ(rgetsockname(listener, any(here), &size), 0);
  EXPECT_EQ(size, sizeof here);
  const int client = make(SOCK_STREAM | SOCK_NONBLOCK, AF_INET6);
  EXPECT_EQ(rconnect(client, any(here), sizeof here), -1);
  EXPECT_EQ(errno, EINPROGRESS);
  const int server = accept_from(listener);
  EXPECT_EQ(poll_one(client, POLLOUT), POLLOUT);
  send_all(client, "six");
  EXPECT_EQ(receive_all(server, 3), "six");
}

// --- bad input

TEST_F(RSocketStreamTest, NotEverySocketIsMade) {
  const auto error_of = [](int domain, int type, int protocol) {
    EXPECT_EQ(rsocket(domain, type, protocol), -1);
    return errno;
  };
  EXPECT_EQ(error_of(AF_UNIX, SOCK_STREAM, 0), EAFNOSUPPORT);
  EXPECT_EQ(error_of(AF_INET, SOCK_RAW, 0), ESOCKTNOSUPPORT);
  EXPECT_EQ(error_of(AF_INET, SOCK_STREAM, IPPROTO_UDP), EPROTONOSUPPORT);
  EXPECT_EQ(error_of(AF_INET, SOCK_DGRAM, IPPROTO_TCP), EPROTONOSUPPORT);
}

TEST_F(RSocketStreamTest, WhatIsNoRSocketIsRefused) {
  char byte = 0;
  for (const int fd : {-1, 0, 100'000}) {
    EXPECT_EQ(rrecv(fd, &byte, 1, 0), -1);
    EXPECT_EQ(errno, EBADF);
    EXPECT_EQ(rclose(fd), -1);
    EXPECT_EQ(errno, EBADF);
    EXPECT_EQ(static_cast<ssize_t>(riowrite(fd, &byte, 1, 0, 0)), -1);
    EXPECT_EQ(raccept(fd, nullptr, nullptr), -1);
  }
}

TEST_F(RSocketStreamTest, CallsThatDoNotFitAreRefused) {
  const int fd = make();
  char byte = 0;
  sockaddr_in here = address(own_address(), 0);
  socklen_t size = sizeof here;
  const auto expect = [&](ssize_t result, int error) {
    EXPECT_EQ(result, -1);
    EXPECT_EQ(errno, error) << strerror(errno);
  };
  expect(rrecv(fd, &byte, 1, 0), ENOTCONN);
  expect(rsend(fd, &byte, 1, 0), ENOTCONN);
  expect(rshutdown(fd, SHUT_WR), ENOTCONN);
  expect(rgetpeername(fd, any(here), &size), ENOTCONN);
  expect(raccept(fd, nullptr, nullptr), EINVAL);
  expect(rbind(fd, nullptr, 0), EINVAL);
  expect(rbind(fd, any(here), 3), EINVAL);
  expect(rconnect(fd, nullptr, 0), EINVAL);
  expect(rreadv(fd, nullptr, 2), EINVAL);
  expect(rwritev(fd, nullptr, -1), EINVAL);
  expect(rfcntl(fd, F_GETLK), EINVAL);
  sockaddr_in elsewhere = address("192.0.2.1", 0);
  expect(rbind(fd, any(elsewhere), sizeof elsewhere), EADDRNOTAVAIL);
  EXPECT_EQ(rbind(fd, any(here), sizeof here), 0);
  expect(rbind(fd, any(here), sizeof here), EINVAL);
  EXPECT_EQ(rlisten(fd, 1), 0);
  EXPECT_EQ(rlisten(fd, 1), 0);
  expect(rconnect(fd, any(here), sizeof here), EOPNOTSUPP);
  const int other = make();
  here = name_of(fd);
  expect(rbind(other, any(here), sizeof here), EADDRINUSE);
  size = 0;
  EXPECT_EQ(rgetsockname(fd, nullptr, &size), 0);
  EXPECT_EQ(size, sizeof here);
}

TEST_F(RSocketStreamTest, AConnectedSocketTakesNoDestination) {
  const auto [client, server] = connect();
  sockaddr_in there = name_of(server);
  EXPECT_EQ(rsendto(client, "x", 1, 0, any(there), sizeof there), -1);
  EXPECT_EQ(errno, EISCONN);
}

}  // namespace
}  // namespace verbena::test
