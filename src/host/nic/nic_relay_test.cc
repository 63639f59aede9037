// Tests a relay between a program's socket and a TCP connection: bytes, back pressure, and how each
// side ends.
#include "host/nic/nic_relay.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>

#include "host/links/tcp/ready_call.h"
#include "host/links/tcp/tcp_socket.h"
#include "host/os/clock.h"
#include "host/os/socket_option.h"

namespace verbena::host {
namespace {

constexpr u32 kEdges = u32{EPOLLIN | EPOLLOUT | EPOLLRDHUP} | EPOLLET;
constexpr Duration kRelayTestPatience = sec(5);
const std::string kRequest = "MPA ID Req Frame", kReply = "MPA ID Rep Frame";

class NICRelayTest : public testing::Test {
 protected:
  void SetUp() override { connect(NICRelay::Opener::kProgram); }
  void connect(NICRelay::Opener opener) {
    const GID loopback = GID::from_ipv4(0x7f000001);
    const Descriptor listener = listen_at({loopback, 0}, 0, 1);
    Descriptor near = connect_to({loopback, endpoint_of(listener.get()).port}, {loopback, 0}, 0);
    TCPEndpoint unused;
    peer_.reset();
    until([&] { return (peer_ = accept_from(listener.get(), unused)).is_open(); });
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    program_ = Descriptor(ends[1]);
    close();
    relay_.emplace(Descriptor(ends[0]), StreamSocket(std::move(near)), opener);
    ASSERT_TRUE(of_program_.watch(relay_->program(), kEdges));
    ASSERT_TRUE(of_network_.watch(relay_->network(), kEdges));
  }
  void close() {
    of_program_.forget();
    of_network_.forget();
    relay_.reset();
  }
  template <typename Condition>
  static void until(Condition&& condition) {
    const Time end = monotonic_now() + kRelayTestPatience;
    while (!condition()) ASSERT_LT(monotonic_now(), end);
  }
  void serve() {
    if (!relay_) return;
    (void)poll_.serve(monotonic_now());
    while (relay_->can_send()) (void)relay_->send(NICRelay::kPieceBytes, piece_);
    while (relay_->can_receive()) (void)relay_->receive(NICRelay::kPieceBytes, piece_);
    is_over_ = relay_->is_over();
    has_sent_no_mpa_ = relay_->has_sent_no_mpa();
    if (is_over_) close();
  }
  void on_program(u32 events, Time) { relay_->on_program(events); }
  void on_network(u32 events, Time) { relay_->on_network(events); }

  static void put(const Descriptor& to, const std::string& text) {
    ASSERT_EQ(::send(to.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT),
              static_cast<ssize_t>(text.size()));
  }
  // Serves until as many bytes have come.
  std::string get(const Descriptor& from, std::size_t bytes) {
    std::string out;
    until([&] {
      serve();
      std::array<char, 4096> room;
      const ssize_t got = ::recv(from.get(), room.data(), room.size(), MSG_DONTWAIT);
      if (got > 0) out.append(room.data(), static_cast<std::size_t>(got));
      return out.size() >= bytes;
    });
    return out;
  }
  // Serves until the end comes: 0, or the errno of a reset.
  int end_of(const Descriptor& from) {
    int error = -1;
    until([&] {
      serve();
      char byte = 0;
      const ssize_t got = ::recv(from.get(), &byte, 1, MSG_DONTWAIT);
      error = got == 0 ? 0 : got < 0 ? errno : -1;
      return error >= 0 && error != EAGAIN;
    });
    return error;
  }
  // Sends as much as `from` takes while the relay is served.
  std::size_t fill(const Descriptor& from) {
    const std::string text(64 << 10, 'x');
    std::size_t sent = 0;
    for (u32 refused = 0; refused < 200; serve()) {
      const ssize_t taken = ::send(from.get(), text.data(), text.size(), MSG_DONTWAIT);
      refused = taken > 0 ? 0 : refused + 1;
      sent += static_cast<std::size_t>(std::max<ssize_t>(taken, 0));
    }
    return sent;
  }

  void reset_peer_until_over() {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    ASSERT_TRUE(set_option(peer_.get(), SOL_SOCKET, SO_LINGER, at_once));
    peer_.reset();
    until([&] {
      serve();
      return is_over_;
    });
  }

  TCPPoll poll_ = *TCPPoll::open();
  NICRelay::Piece piece_{};
  Descriptor program_, peer_;
  std::optional<NICRelay> relay_;
  bool is_over_ = false, has_sent_no_mpa_ = false;
  ReadyCall<NICRelayTest, &NICRelayTest::on_program> of_program_{*this, poll_};
  ReadyCall<NICRelayTest, &NICRelayTest::on_network> of_network_{*this, poll_};
};

TEST_F(NICRelayTest, BytesGoBothWays) {
  put(program_, kRequest + "and more");
  EXPECT_EQ(get(peer_, 24), kRequest + "and more");
  put(peer_, "a reply");
  EXPECT_EQ(get(program_, 7), "a reply");
}

// Neither side can make the relay keep more than a piece besides the kernel's buffers.
TEST_F(NICRelayTest, ASenderWaitsForAReceiverThatTakesNothing) {
  const int small = 16 << 10;
  ASSERT_TRUE(set_option(peer_.get(), SOL_SOCKET, SO_RCVBUF, small));
  put(program_, kRequest);
  const std::size_t sent = fill(program_) + kRequest.size();
  EXPECT_FALSE(relay_->can_send());
  EXPECT_LT(sent, std::size_t{16} << 20);
  EXPECT_EQ(get(peer_, sent).size(), sent);
  const std::size_t received = fill(peer_);
  EXPECT_FALSE(relay_->can_receive());
  EXPECT_EQ(get(program_, received).size(), received);
}

TEST_F(NICRelayTest, OneSideEndsAndTheOtherGoesOn) {
  put(program_, kRequest);
  ASSERT_EQ(::shutdown(program_.get(), SHUT_WR), 0);
  EXPECT_EQ(get(peer_, 16), kRequest);
  EXPECT_EQ(end_of(peer_), 0);
  put(peer_, "late");
  EXPECT_EQ(get(program_, 4), "late");
  EXPECT_FALSE(is_over_);
  ASSERT_EQ(::shutdown(peer_.get(), SHUT_WR), 0);
  EXPECT_EQ(end_of(program_), 0);
}

// The bytes that a program wrote before it closed arrive.
TEST_F(NICRelayTest, AProgramThatCloses) {
  put(program_, kRequest + std::string(100'000, 'y'));
  program_.reset();
  EXPECT_EQ(get(peer_, 100'016).size(), 100'016u);
  EXPECT_EQ(end_of(peer_), 0);
}

TEST_F(NICRelayTest, AProgramThatClosesWithoutReadingResetsThePeer) {
  put(peer_, "unread");
  until([&] {
    serve();
    char byte = 0;
    return ::recv(program_.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 1;
  });
  program_.reset();
  EXPECT_EQ(end_of(peer_), ECONNRESET);
}

TEST_F(NICRelayTest, APeerThatResets) {
  put(program_, kRequest);
  EXPECT_EQ(get(peer_, 16), kRequest);
  reset_peer_until_over();
}

// The program has stopped reading: the reset does not wait for it.
TEST_F(NICRelayTest, APeerThatResetsWhileTheProgramTakesNothing) {
  (void)fill(peer_);
  ASSERT_FALSE(relay_->can_receive());
  reset_peer_until_over();
}

// The first bytes may come one by one.
TEST_F(NICRelayTest, OnlyMPALeaves) {
  for (const char byte : kRequest) {
    put(program_, {byte});
    EXPECT_EQ(get(peer_, 1), std::string(1, byte));
  }
  EXPECT_FALSE(has_sent_no_mpa_);
  for (const std::string& wrong : {std::string("GET / HTTP/1.0\r\n\r\n"), kReply}) {
    connect(NICRelay::Opener::kProgram);
    put(program_, wrong);
    until([&] {
      serve();
      return is_over_;
    });
    EXPECT_TRUE(has_sent_no_mpa_);
    EXPECT_EQ(end_of(peer_), ECONNRESET) << wrong;
  }
  connect(NICRelay::Opener::kPeer);
  put(program_, kReply);
  EXPECT_EQ(get(peer_, 16), kReply);
}

}  // namespace
}  // namespace verbena::host
