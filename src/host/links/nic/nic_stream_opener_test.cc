// Tests the connections of an iWARP device on a virtual function, with a NIC in this process: who
// they reach, and what becomes of them when the NIC ends and returns.
#include "host/links/nic/nic_stream_opener.h"

#include <gtest/gtest.h>
#include <poll.h>

#include "host/nic/nic_for_test.h"

namespace verbena::host {
namespace {

constexpr u16 kPort = 17201;
constexpr int kAnswerMs = 3000;

class NICStreamOpenerTest : public NICTest {
 protected:
  void SetUp() override {
    config_.functions = {{.name = "red", .address = "127.88.4.1"},
                         {.name = "blue", .address = "127.88.4.2"}};
    start();
    red_ = open("red");
    blue_ = open("blue");
  }
  std::unique_ptr<NICStreamOpener> open(const std::string& function) {
    auto opened = NICStreamOpener::open(path_, function, poll_);
    EXPECT_TRUE(opened.has_value()) << opened.error().message;
    return opened ? std::move(*opened) : nullptr;
  }
  static void await(const Descriptor& fd) {
    pollfd asked{.fd = fd.get(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&asked, 1, kAnswerMs), 1);
  }
  Descriptor connect() { return blue_->connect({kRed, kPort}, {kBlue, 0}); }

  const GID kRed = *GID::parse("127.88.4.1"), kBlue = *GID::parse("127.88.4.2");
  TCPPoll poll_ = *TCPPoll::open();
  std::unique_ptr<NICStreamOpener> red_, blue_;
};

TEST_F(NICStreamOpenerTest, AConnection) {
  const Descriptor listener = red_->listen({kRed, kPort}, 4);
  ASSERT_TRUE(listener.is_open());
  EXPECT_FALSE(red_->accept(listener.get()).has_value());
  EXPECT_EQ(errno, EAGAIN);
  Descriptor connecting = connect();
  ASSERT_TRUE(connecting.is_open());
  await(connecting);
  const std::optional<OpenedStream> near = blue_->connected(connecting);
  await(listener);
  const std::optional<OpenedStream> far = red_->accept(listener.get());
  ASSERT_TRUE(near && far);
  EXPECT_EQ(near->ends.local, kBlue);
  EXPECT_EQ(near->ends.remote, kRed);
  EXPECT_EQ(near->ends.remote_port, kPort);
  EXPECT_EQ(far->ends, near->ends.reversed());
  EXPECT_GE(near->segment_bytes, 536u);
  ASSERT_EQ(::send(near->socket.get(), "MPA", 3, MSG_NOSIGNAL), 3);
  await(far->socket);
}

TEST_F(NICStreamOpenerTest, Refusals) {
  EXPECT_FALSE(red_->listen({kBlue, kPort}, 4).is_open());
  EXPECT_EQ(errno, EACCES);
  const Descriptor listener = red_->listen({kRed, kPort}, 4);
  EXPECT_FALSE(red_->listen({kRed, kPort}, 4).is_open());
  EXPECT_EQ(errno, EADDRINUSE);
  Descriptor connecting = blue_->connect({kRed, kPort + 1}, {kBlue, 0});
  ASSERT_TRUE(connecting.is_open());
  await(connecting);
  EXPECT_FALSE(blue_->connected(connecting).has_value());
  EXPECT_EQ(errno, ECONNREFUSED);
}

TEST_F(NICStreamOpenerTest, APortIsFreeWhenItsListenerIsClosed) {
  Descriptor listener = red_->listen({kRed, kPort}, 4);
  red_->close_listener(std::move(listener));
  EXPECT_TRUE(red_->listen({kRed, kPort}, 4).is_open());
}

// The caller asks again after ECONNREFUSED.
TEST_F(NICStreamOpenerTest, TheNICEndsAndReturns) {
  const Descriptor listener = red_->listen({kRed, kPort}, 4);
  Descriptor connecting = connect();
  await(connecting);
  const std::optional<OpenedStream> stream = blue_->connected(connecting);
  ASSERT_TRUE(stream.has_value());
  await(listener);
  ASSERT_TRUE(red_->accept(listener.get()).has_value());
  stop();
  await(stream->socket);
  char byte = 0;
  EXPECT_LE(::recv(stream->socket.get(), &byte, 1, MSG_DONTWAIT), 0);
  await(listener);
  EXPECT_FALSE(red_->accept(listener.get()).has_value());
  EXPECT_EQ(errno, ENOTCONN);
  EXPECT_FALSE(connect().is_open());
  EXPECT_EQ(errno, ECONNREFUSED);

  Time now = monotonic_now();
  (void)poll_.serve(now);
  for (NICStreamOpener* const opener : {red_.get(), blue_.get()}) {
    EXPECT_TRUE(opener->take_death());
    EXPECT_FALSE(opener->take_death());
    EXPECT_EQ(opener->next_timer(), now + NICStreamOpener::kRetryInterval);
    EXPECT_FALSE(opener->run_due_timers(now));
    now = now + NICStreamOpener::kRetryInterval;
    EXPECT_FALSE(opener->run_due_timers(now)) << "no NIC is there";
    now = now - NICStreamOpener::kRetryInterval;
  }
  start();
  now = now + NICStreamOpener::kRetryInterval * 2;
  for (NICStreamOpener* const opener : {red_.get(), blue_.get()}) {
    EXPECT_TRUE(opener->run_due_timers(now));
    EXPECT_TRUE(opener->take_return());
    EXPECT_EQ(opener->next_timer(), Time::never());
  }
  const Descriptor again = red_->listen({kRed, kPort}, 4);
  ASSERT_TRUE(again.is_open());
  EXPECT_TRUE(connect().is_open());
  await(again);
}

}  // namespace
}  // namespace verbena::host
