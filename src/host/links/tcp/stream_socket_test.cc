// Tests the calls of a connection in clear: pieces, and threads that are cancelled.
#include "host/links/tcp/stream_socket.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include <array>
#include <string>

#include "host/links/tcp/tcp_poll.h"
#include "host/nic/nic_protocol.h"

namespace verbena::host {
namespace {

class StreamSocketTest : public testing::Test {
 protected:
  StreamSocketTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    near_ = StreamSocket(Descriptor(ends[0]));
    far_ = StreamSocket(Descriptor(ends[1]));
  }
  static iovec piece(std::string& text) { return {text.data(), text.size()}; }

  StreamSocket near_, far_;
};

TEST_F(StreamSocketTest, OnePieceAndSeveral) {
  std::string first = "abc", second = "defgh";
  std::array<iovec, 2> both = {piece(first), piece(second)};
  EXPECT_EQ(near_.send(both), 8);
  EXPECT_EQ(near_.send(std::span(both).first(1)), 3);
  std::string head(2, ' '), rest(20, ' ');
  std::array<iovec, 2> into = {piece(head), piece(rest)};
  EXPECT_EQ(far_.receive(into), 11);
  EXPECT_EQ(head + rest.substr(0, 9), "abcdefghabc");
  EXPECT_LT(far_.receive(std::span(into).first(1)), 0);
  EXPECT_EQ(errno, EAGAIN);
}

// A call may run with the adapter's lock: a thread that is cancelled in it would keep the lock.
TEST_F(StreamSocketTest, NoCallIsACancellationPoint) {
  struct Shared {
    StreamSocket &near, &far;
    TCPPoll poll = *TCPPoll::open();
    Descriptor doorbell{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    bool is_through = false;
  } shared{near_, far_};
  const auto call_all = [](void* of) -> void* {
    Shared& all = *static_cast<Shared*>(of);
    std::array<char, 8> text{};
    std::array<iovec, 2> pieces{};
    pieces.fill({text.data(), text.size()});
    pthread_cancel(pthread_self());
    for (const std::size_t count : {1, 2}) {
      EXPECT_GT(all.near.send(std::span(pieces).first(count)), 0);
      EXPECT_GT(all.far.receive(std::span(pieces).first(count)), 0);
    }
    EXPECT_EQ(all.poll.serve(Time()), 0u);
    ring_doorbell(all.doorbell.get());
    clear_doorbell(all.doorbell.get());
    all.is_through = true;
    return nullptr;
  };
  pthread_t thread{};
  ASSERT_EQ(pthread_create(&thread, nullptr, call_all, &shared), 0);
  pthread_join(thread, nullptr);
  EXPECT_TRUE(shared.is_through);
}

}  // namespace
}  // namespace verbena::host
