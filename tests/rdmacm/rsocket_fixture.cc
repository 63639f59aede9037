#include "tests/rdmacm/rsocket_fixture.h"

#include <fcntl.h>

#include <algorithm>

namespace verbena::test {

void RSocketTest::TearDown() {
  while (!open_.empty()) close(open_.back());
  RDMACMTest::TearDown();
}

int RSocketTest::make(int type, int domain) {
  const int fd = rsocket(domain, type, 0);
  EXPECT_GE(fd, 0) << strerror(errno);
  open_.push_back(fd);
  return fd;
}

void RSocketTest::close(int fd) {
  std::erase(open_, fd);
  EXPECT_EQ(rclose(fd), 0) << strerror(errno);
}

int RSocketTest::make_listener() {
  const int fd = make();
  sockaddr_in here = address(own_address(), 0);
  EXPECT_EQ(rbind(fd, any(here), sizeof here), 0) << strerror(errno);
  EXPECT_EQ(rlisten(fd, 8), 0) << strerror(errno);
  return fd;
}

int RSocketTest::start_connecting(int listener) {
  const int fd = make();
  set_blocking(fd, false);
  sockaddr_in there = name_of(listener);
  EXPECT_EQ(rconnect(fd, any(there), sizeof there), -1);
  EXPECT_EQ(errno, EINPROGRESS) << strerror(errno);
  return fd;
}

int RSocketTest::accept_from(int listener) {
  EXPECT_EQ(poll_one(listener, POLLIN), POLLIN);
  errno = 0;
  const int fd = raccept(listener, nullptr, nullptr);
  EXPECT_EQ(errno, 0);
  EXPECT_GE(fd, 0) << strerror(errno);
  open_.push_back(fd);
  return fd;
}

RSocketTest::Ends RSocketTest::connect(const std::function<void(int)>& prepare) {
  const int listener = make_listener();
  prepare(listener);
  const int client = make();
  prepare(client);
  set_blocking(client, false);
  sockaddr_in there = name_of(listener);
  EXPECT_EQ(rconnect(client, any(there), sizeof there), -1);
  EXPECT_EQ(errno, EINPROGRESS) << strerror(errno);
  const int server = accept_from(listener);
  EXPECT_EQ(poll_one(client, POLLOUT), POLLOUT);
  EXPECT_EQ(poll_one(server, POLLOUT), POLLOUT);
  set_blocking(client, true);
  close(listener);
  return {client, server};
}

sockaddr_in RSocketTest::name_of(int fd) {
  sockaddr_in name{};
  socklen_t size = sizeof name;
  EXPECT_EQ(rgetsockname(fd, any(name), &size), 0);
  return name;
}

void RSocketTest::set(int fd, int level, int option, int value) {
  EXPECT_EQ(rsetsockopt(fd, level, option, &value, sizeof value), 0) << option;
}

int RSocketTest::get(int fd, int level, int option) {
  int value = -1;
  socklen_t size = sizeof value;
  EXPECT_EQ(rgetsockopt(fd, level, option, &value, &size), 0) << option;
  EXPECT_EQ(size, sizeof value);
  return value;
}

void RSocketTest::set_blocking(int fd, bool blocking) {
  EXPECT_EQ(rfcntl(fd, F_SETFL, blocking ? 0 : O_NONBLOCK), 0);
}

int RSocketTest::poll_one(int fd, short events, int limit_ms) {
  pollfd on{.fd = fd, .events = events, .revents = 0};
  EXPECT_GE(rpoll(&on, 1, limit_ms), 0) << strerror(errno);
  return on.revents;
}

std::string RSocketTest::text(std::size_t size, unsigned seed) {
  std::string bytes(size, '\0');
  std::ranges::generate(
      bytes, [&] { return static_cast<char>((seed = seed * 1664525 + 1013904223) >> 24); });
  return bytes;
}

void RSocketTest::send_all(int fd, const std::string& text) {
  std::size_t sent = 0;
  while (sent < text.size()) {
    const ssize_t n = rsend(fd, text.data() + sent, text.size() - sent, 0);
    ASSERT_GT(n, 0) << strerror(errno);
    sent += static_cast<std::size_t>(n);
  }
}

std::string RSocketTest::receive_all(int fd, std::size_t size) {
  std::string bytes(size, '\0');
  std::size_t got = 0;
  while (got < size && (poll_one(fd, POLLIN) & POLLIN) != 0) {
    const ssize_t n = rrecv(fd, bytes.data() + got, size - got, MSG_DONTWAIT);
    if (n <= 0) break;
    got += static_cast<std::size_t>(n);
  }
  bytes.resize(got);
  return bytes;
}

}  // namespace verbena::test
