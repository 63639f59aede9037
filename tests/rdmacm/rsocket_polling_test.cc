// rpoll, rselect and repoll: rsockets and other descriptors together. rsocket(7).
#include <sys/epoll.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "tests/rdmacm/rsocket_fixture.h"

extern "C" {  // declared by newer headers than Debian 12's
int repoll_create(int flags);
int repoll_ctl(int poll, int operation, int descriptor, epoll_event* event);
int repoll_wait(int poll, epoll_event* events, int max_events, int timeout_ms);
}

namespace verbena::test {
namespace {

class RSocketPollingTest : public RSocketTest {
 protected:
  void SetUp() override {
    RSocketTest::SetUp();
    ASSERT_EQ(pipe(pipe_.data()), 0);
  }
  void TearDown() override {
    for (const int fd : pipe_) ::close(fd);
    RSocketTest::TearDown();
  }

  [[nodiscard]] int reading_end() const { return pipe_[0]; }
  void write_to_pipe() const { EXPECT_EQ(::write(pipe_[1], "x", 1), 1); }

 private:
  std::array<int, 2> pipe_{};
};

TEST_F(RSocketPollingTest, AMixTellsWhichIsReady) {
  const auto [client, server] = connect();
  std::array<pollfd, 4> on{{{.fd = server, .events = POLLIN, .revents = 9},
                            {.fd = reading_end(), .events = POLLIN, .revents = 9},
                            {.fd = -1, .events = POLLIN, .revents = 9},
                            {.fd = client, .events = POLLOUT | POLLIN, .revents = 9}}};
  EXPECT_EQ(rpoll(on.data(), on.size(), kLimit_ms), 1);
  EXPECT_EQ(on[3].revents, POLLOUT);
  EXPECT_EQ(on[0].revents | on[1].revents | on[2].revents, 0);
  on[3].events = POLLIN;
  EXPECT_EQ(rpoll(on.data(), on.size(), 0), 0);
  EXPECT_EQ(rpoll(on.data(), on.size(), 20), 0);
  write_to_pipe();
  EXPECT_EQ(rpoll(on.data(), on.size(), kLimit_ms), 1);
  EXPECT_EQ(on[1].revents, POLLIN);
  send_all(client, "x");
  EXPECT_EQ(poll_one(server, POLLIN), POLLIN);
  EXPECT_EQ(rpoll(on.data(), on.size(), 0), 2);
}

TEST_F(RSocketPollingTest, SleepersAreWoken) {
  const auto ends = connect();
  std::thread a([&] { EXPECT_EQ(poll_one(ends.server, POLLIN), POLLIN); });
  std::thread b([&] { EXPECT_EQ(poll_one(ends.server, POLLIN), POLLIN); });
  std::thread c([&] { EXPECT_EQ(poll_one(reading_end(), POLLIN), POLLIN); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  send_all(ends.client, "x");
  write_to_pipe();
  for (std::thread* thread : {&a, &b, &c}) thread->join();
}

TEST_F(RSocketPollingTest, WhatIsNoDescriptorIsInvalid) {
  const int listener = make_listener();
  std::array<pollfd, 2> on{{{.fd = listener, .events = POLLIN, .revents = 0},
                            {.fd = 100'000, .events = POLLIN, .revents = 0}}};
  EXPECT_EQ(rpoll(on.data(), on.size(), kLimit_ms), 1);
  EXPECT_EQ(on[1].revents, POLLNVAL);
  EXPECT_EQ(rpoll(nullptr, 1, 0), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(rpoll(on.data(), ~nfds_t{0}, 0), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rpoll(nullptr, 0, 1), 0);
}

TEST_F(RSocketPollingTest, SelectKeepsWhatIsReady) {
  const auto [client, server] = connect();
  const int most = std::max({client, server, reading_end()}) + 1;
  fd_set readable, writable;
  const auto fill = [&, server = server, client = client] {
    FD_ZERO(&readable);
    FD_ZERO(&writable);
    FD_SET(server, &readable);
    FD_SET(reading_end(), &readable);
    FD_SET(client, &writable);
  };
  fill();
  timeval limit{.tv_sec = 30, .tv_usec = 0};
  EXPECT_EQ(rselect(most, &readable, &writable, nullptr, &limit), 1);
  EXPECT_TRUE(FD_ISSET(client, &writable));
  EXPECT_FALSE(FD_ISSET(server, &readable) || FD_ISSET(reading_end(), &readable));
  send_all(client, "x");
  write_to_pipe();
  EXPECT_EQ(poll_one(server, POLLIN), POLLIN);
  fill();
  EXPECT_EQ(rselect(most, &readable, &writable, nullptr, nullptr), 3);
  fill();
  FD_CLR(client, &writable);
  EXPECT_EQ(receive_all(server, 1), "x");
  timeval moment{.tv_sec = 0, .tv_usec = 1000};
  FD_CLR(reading_end(), &readable);
  EXPECT_EQ(rselect(most, &readable, &writable, nullptr, &moment), 0);
}

TEST_F(RSocketPollingTest, SelectRefusesWhatMakesNoSense) {
  timeval never{.tv_sec = -1, .tv_usec = 0};
  EXPECT_EQ(rselect(0, nullptr, nullptr, nullptr, &never), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rselect(-1, nullptr, nullptr, nullptr, nullptr), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(RSocketPollingTest, RepollKeepsItsList) {
  const auto [client, server] = connect();
  const int list = repoll_create(EPOLL_CLOEXEC);
  ASSERT_GE(list, 0);
  epoll_event event{.events = EPOLLIN, .data = {.u64 = 7}}, got{};
  EXPECT_EQ(repoll_ctl(list, EPOLL_CTL_MOD, server, &event), -1);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(repoll_ctl(list, EPOLL_CTL_ADD, server, &event), 0);
  EXPECT_EQ(repoll_ctl(list, EPOLL_CTL_ADD, server, &event), -1);
  EXPECT_EQ(errno, EEXIST);
  event = {.events = EPOLLIN | EPOLLONESHOT, .data = {.u64 = 8}};
  EXPECT_EQ(repoll_ctl(list, EPOLL_CTL_ADD, reading_end(), &event), 0);
  EXPECT_EQ(repoll_wait(list, &got, 1, 5), 0);
  send_all(client, "x");
  EXPECT_EQ(repoll_wait(list, &got, 1, kLimit_ms), 1);
  EXPECT_EQ(got.data.u64, 7U);
  EXPECT_EQ(got.events, static_cast<unsigned>(EPOLLIN));
  EXPECT_EQ(repoll_ctl(list, EPOLL_CTL_DEL, server, nullptr), 0);
  write_to_pipe();
  EXPECT_EQ(repoll_wait(list, &got, 1, kLimit_ms), 1);
  EXPECT_EQ(got.data.u64, 8U);
  EXPECT_EQ(repoll_wait(list, &got, 1, 5), 0);  // it had its one
  EXPECT_EQ(repoll_wait(list, nullptr, 0, 0), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rclose(list), 0);
  EXPECT_EQ(repoll_wait(list, &got, 1, 0), -1);
  EXPECT_EQ(errno, EBADF);
}

TEST_F(RSocketPollingTest, AChangeOfTheListReachesThoseThatWait) {
  const int list = repoll_create(0);
  std::thread waiting([&] {
    epoll_event got{};
    EXPECT_EQ(repoll_wait(list, &got, 1, kLimit_ms), 1);
    EXPECT_EQ(got.data.u64, 9U);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  write_to_pipe();
  epoll_event event{.events = EPOLLIN, .data = {.u64 = 9}};
  EXPECT_EQ(repoll_ctl(list, EPOLL_CTL_ADD, reading_end(), &event), 0);
  waiting.join();
  EXPECT_EQ(rclose(list), 0);
}

}  // namespace
}  // namespace verbena::test
