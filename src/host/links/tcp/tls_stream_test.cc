// Two ends of one TCP connection with TLS on it: bytes arrive as they were sent, whatever the
// socket takes at a time. A peer without the key gets nothing.
#include "host/links/tcp/tls_stream.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <numeric>

#include "host/links/tcp/stream_socket.h"
#include "host/links/tcp/tcp_socket.h"
#include "host/os/clock.h"

namespace verbena::host {
namespace {

constexpr Duration kTLSTestPatience = sec(5);

class TLSStreamTest : public testing::Test {
 protected:
  void SetUp() override {
    write_key(file_, "a key that only these two know");
    write_key(other_file_, "a key that is another one");
    const GID loopback = GID::from_ipv4(0x7f000001);
    const Descriptor listener = listen_at({loopback, 0}, 0, 1);
    client_ = connect_to({loopback, endpoint_of(listener.get()).port}, {loopback, 0}, 0);
    TCPEndpoint peer;
    const Time end = monotonic_now() + kTLSTestPatience;
    while (!server_.is_open() && monotonic_now() < end) server_ = accept_from(listener.get(), peer);
    ASSERT_TRUE(server_.is_open() && client_.is_open());
  }
  void TearDown() override {
    ::unlink(file_.c_str());
    ::unlink(other_file_.c_str());
  }
  static void write_key(const std::string& path, const std::string& key) {
    std::ofstream(path) << key << '\n';
  }
  std::unique_ptr<TLSCredentials> credentials(const std::string& file) const {
    return std::move(*TLSCredentials::load(ssl_, {.psk_file = file}));
  }
  void secure(const TLSCredentials& of_client, const TLSCredentials& of_server) {
    const GID loopback = GID::from_ipv4(0x7f000001);
    client_.secure(
        std::make_unique<TLSStream>(ssl_, of_client, client_.get(), TLSRole::kClient, loopback));
    server_.secure(
        std::make_unique<TLSStream>(ssl_, of_server, server_.get(), TLSRole::kServer, loopback));
  }
  // How it ends for both.
  std::pair<TLSStream::Handshake, TLSStream::Handshake> shake_hands() {
    using Handshake = TLSStream::Handshake;
    std::pair<Handshake, Handshake> at{Handshake::kGoesOn, Handshake::kGoesOn};
    for (const Time end = monotonic_now() + kTLSTestPatience; monotonic_now() < end;) {
      if (at.first == Handshake::kGoesOn) at.first = client_.tls()->shake_hands();
      if (at.second == Handshake::kGoesOn) at.second = server_.tls()->shake_hands();
      if (at.first == Handshake::kFailed || at.second == Handshake::kFailed) return at;
      if (at.first == Handshake::kDone && at.second == Handshake::kDone) return at;
    }
    return at;
  }
  // Moves all bytes from one end to the other, in pieces of `piece` bytes.
  static std::vector<u8> move(StreamSocket& from, StreamSocket& to, std::span<u8> bytes,
                              std::size_t piece) {
    std::vector<u8> got;
    std::vector<u8> room(50'000);
    std::size_t sent = 0;
    for (const Time end = monotonic_now() + kTLSTestPatience;
         got.size() < bytes.size() && monotonic_now() < end;) {
      if (sent < bytes.size()) {
        const std::size_t half = std::min(piece, bytes.size() - sent) / 2;
        const std::size_t rest = std::min(piece, bytes.size() - sent) - half;
        iovec pieces[2] = {{bytes.data() + sent, half}, {bytes.data() + sent + half, rest}};
        const i64 taken = from.send(pieces);
        if (taken > 0) sent += static_cast<std::size_t>(taken);
      } else {
        (void)from.flush();
      }
      iovec into{room.data(), room.size()};
      const i64 received = to.receive({&into, 1});
      if (received > 0) got.insert(got.end(), room.begin(), room.begin() + received);
    }
    return got;
  }

  const OpenSSL& ssl_ = **OpenSSL::load();
  const std::string file_ = "/tmp/verbena-tls-test-" + std::to_string(::getpid());
  const std::string other_file_ = file_ + "-other";
  StreamSocket client_, server_;
};

TEST_F(TLSStreamTest, BytesArriveAsTheyWereSent) {
  const auto known = credentials(file_);
  const int small = 4096;
  for (const int socket : {client_.get(), server_.get()})
    ASSERT_EQ(::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
  secure(*known, *known);
  ASSERT_EQ(shake_hands(), std::pair(TLSStream::Handshake::kDone, TLSStream::Handshake::kDone));
  std::vector<u8> bytes(300'001);
  std::iota(bytes.begin(), bytes.end(), u8{3});
  for (const std::size_t piece : {std::size_t{701}, TLSStream::kRecordBytes, bytes.size()}) {
    EXPECT_EQ(move(client_, server_, bytes, piece), bytes) << piece;
    EXPECT_EQ(move(server_, client_, bytes, piece), bytes) << piece;
  }
  client_.finish();
  std::array<u8, 16> room;
  iovec into{room.data(), room.size()};
  i64 got = -1;
  for (const Time end = monotonic_now() + kTLSTestPatience; got < 0 && monotonic_now() < end;)
    got = server_.receive({&into, 1});
  EXPECT_EQ(got, 0);
}

TEST_F(TLSStreamTest, AnEndWithoutTLSsIsAnError) {
  const auto known = credentials(file_);
  secure(*known, *known);
  ASSERT_EQ(shake_hands(), std::pair(TLSStream::Handshake::kDone, TLSStream::Handshake::kDone));
  ASSERT_EQ(::shutdown(client_.get(), SHUT_WR), 0);
  std::array<u8, 16> room;
  iovec into{room.data(), room.size()};
  i64 got = -1;
  errno = EAGAIN;
  for (const Time end = monotonic_now() + kTLSTestPatience;
       got < 0 && errno == EAGAIN && monotonic_now() < end;)
    got = server_.receive({&into, 1});
  EXPECT_EQ(got, -1);
  EXPECT_EQ(errno, ECONNRESET);
}

TEST_F(TLSStreamTest, AnotherKeyIsRefused) {
  const auto known = credentials(file_), other = credentials(other_file_);
  secure(*other, *known);
  const auto [client, server] = shake_hands();
  EXPECT_TRUE(client == TLSStream::Handshake::kFailed || server == TLSStream::Handshake::kFailed);
}

TEST_F(TLSStreamTest, APeerInClearIsRefused) {
  const auto known = credentials(file_);
  const GID loopback = GID::from_ipv4(0x7f000001);
  server_.secure(
      std::make_unique<TLSStream>(ssl_, *known, server_.get(), TLSRole::kServer, loopback));
  ASSERT_EQ(::send(client_.get(), "MPA ID Req Frame\0\0\0\0", 20, 0), 20);
  TLSStream::Handshake at = TLSStream::Handshake::kGoesOn;
  for (const Time end = monotonic_now() + kTLSTestPatience;
       at == TLSStream::Handshake::kGoesOn && monotonic_now() < end;)
    at = server_.tls()->shake_hands();
  EXPECT_EQ(at, TLSStream::Handshake::kFailed);
  EXPECT_NE(server_.tls()->error(), "");
}

TEST(TLSRecordTest, FirstBytes) {
  const std::array<u8, 3> handshake{22, 3, 1}, alert{21, 3, 3};
  const std::array<u8, 3> mpa{'M', 'P', 'A'};
  EXPECT_TRUE(looks_like_tls(handshake));
  EXPECT_TRUE(looks_like_tls(alert));
  EXPECT_FALSE(looks_like_tls(mpa));
  EXPECT_FALSE(looks_like_tls(std::span(alert).first(1)));
}

}  // namespace
}  // namespace verbena::host
