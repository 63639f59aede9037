// Tests a NIC whose tenants have iWARP devices: which connections it opens for them, what passes
// through, and what a tenant can do to others.
#include "host/nic/nic_streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "host/nic/nic_for_test.h"

namespace verbena::host {
namespace {

constexpr Duration kStreamsPatience = sec(5);
const std::string kRequestKey = "MPA ID Req Frame", kReplyKey = "MPA ID Rep Frame";

bool becomes_readable(int fd, Duration patience = kStreamsPatience) {
  pollfd asked{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&asked, 1, static_cast<int>(patience.ns() / 1'000'000)) == 1;
}

class NICStreamsTest : public NICTest {
 protected:
  void SetUp() override {
    config_.functions = {{.name = "red", .address = "127.88.3.1"},
                         {.name = "blue", .address = "127.88.3.2"}};
  }
  void TearDown() override {
    NICTest::TearDown();
    ::unlink(key_.c_str());
  }

  // Tenant: an attached program.
  struct Tenant {
    NICStreamAttachment attachment;
    GID address;
    u32 last_number = 0;

    explicit Tenant(NICStreamAttachment a)
        : attachment(std::move(a)), address(*GID::parse(text_of(attachment.attached.address))) {}
    int socket() const { return attachment.socket.get(); }
    NICMessage<NICStreamAnswer> ask(NICStreamRequest request) {
      request.number = ++last_number;
      EXPECT_EQ(::send(socket(), &request, sizeof(request), MSG_NOSIGNAL),
                static_cast<ssize_t>(sizeof(request)));
      EXPECT_TRUE(becomes_readable(socket()));
      auto answer = receive_nic_message<NICStreamAnswer>(socket());
      EXPECT_TRUE(answer.has_value());
      if (!answer) return {.body = {.error = EPIPE}};
      EXPECT_EQ(answer->body.number, request.number);
      return std::move(*answer);
    }
    NICMessage<NICStreamAnswer> listen(u16 port) {
      return ask({.call = NICStreamCall::kListen,
                  .backlog = 16,
                  .ends = {.local = address, .local_port = port}});
    }
    NICMessage<NICStreamAnswer> connect(const Tenant& to, u16 port) {
      return ask({.call = NICStreamCall::kConnect, .ends = {address, to.address, 0, port}});
    }
  };
  std::unique_ptr<Tenant> attach(const std::string& function) {
    auto attachment = attach_streams_to_nic(path_, function);
    EXPECT_TRUE(attachment.has_value()) << attachment.error().message;
    return std::make_unique<Tenant>(std::move(*attachment));
  }
  static NICMessage<NICStreamOpened> take(const Descriptor& door) {
    EXPECT_TRUE(becomes_readable(door.get()));
    auto opened = receive_nic_message<NICStreamOpened>(door.get());
    EXPECT_TRUE(opened.has_value());
    return opened ? std::move(*opened) : NICMessage<NICStreamOpened>{.body = {.error = EPIPE}};
  }
  struct Pair {
    Descriptor near, far;  // of the one that connects, of the one that listens
    TCPTuple near_ends, far_ends;
  };
  // A connection from one to the other. `to` listens at `port` no longer.
  Pair connected(Tenant& from, Tenant& to, u16 port) {
    const auto listener = to.listen(port);
    EXPECT_EQ(listener.body.error, 0);
    const auto connecting = from.connect(to, port);
    EXPECT_EQ(connecting.body.error, 0);
    auto near = take(connecting.descriptor);
    auto far = take(listener.descriptor);
    EXPECT_EQ(near.body.error, 0);
    EXPECT_GE(near.body.segment_bytes, 536u);
    return {std::move(near.descriptor), std::move(far.descriptor), near.body.ends, far.body.ends};
  }
  static u16 free_port() {
    static u16 next = 17100;
    return ++next;
  }
  static void put(const Descriptor& to, const std::string& text) {
    ASSERT_EQ(::send(to.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  static std::string get(const Descriptor& from, std::size_t bytes) {
    std::string out(bytes, '\0');
    std::size_t got = 0;
    while (got < bytes && becomes_readable(from.get())) {
      const ssize_t more = ::recv(from.get(), out.data() + got, bytes - got, MSG_DONTWAIT);
      if (more <= 0) break;
      got += static_cast<std::size_t>(more);
    }
    out.resize(got);
    return out;
  }
  // Sends until nothing is taken for a while.
  static void fill(const Descriptor& to) {
    const std::string much(1 << 20, 'x');
    for (u32 refused = 0; refused < 50; sleep_for(ms(1)))
      refused = ::send(to.get(), much.data(), much.size(), MSG_DONTWAIT) > 0 ? 0 : refused + 1;
  }
  static bool ends(const Descriptor& stream) {
    char byte = 0;
    return becomes_readable(stream.get()) && ::recv(stream.get(), &byte, 1, MSG_DONTWAIT) <= 0;
  }
  void check_that_others_go_on() {
    const auto red = attach("red"), blue = attach("blue");
    const Pair pair = connected(*blue, *red, free_port());
    put(pair.near, kRequestKey);
    EXPECT_EQ(get(pair.far, 16), kRequestKey);
  }

  const std::string key_ = path_ + ".key";
};

TEST_F(NICStreamsTest, BytesPassFromTenantToTenant) {
  start();
  const auto red = attach("red"), blue = attach("blue");
  const u16 port = free_port();
  const Pair pair = connected(*blue, *red, port);
  EXPECT_EQ(pair.near_ends.local, blue->address);
  EXPECT_EQ(pair.near_ends.remote, red->address);
  EXPECT_EQ(pair.near_ends.remote_port, port);
  EXPECT_EQ(pair.far_ends, pair.near_ends.reversed());
  put(pair.near, kRequestKey + "one");
  EXPECT_EQ(get(pair.far, 19), kRequestKey + "one");
  put(pair.far, kReplyKey + "two");
  EXPECT_EQ(get(pair.near, 19), kReplyKey + "two");
  EXPECT_EQ(counter("blue", "stream_sent_bytes", 19), 19u);
  EXPECT_EQ(counter("blue", "stream_received_bytes", 19), 19u);
  EXPECT_EQ(counter("red", "streams", 1), 1u);
}

TEST_F(NICStreamsTest, EndsAreTold) {
  start();
  const auto red = attach("red"), blue = attach("blue");
  Pair pair = connected(*blue, *red, free_port());
  put(pair.near, kRequestKey);
  ASSERT_EQ(::shutdown(pair.near.get(), SHUT_WR), 0);
  EXPECT_EQ(get(pair.far, 16), kRequestKey);
  EXPECT_TRUE(ends(pair.far));
  put(pair.far, kReplyKey);
  pair.far.reset();
  EXPECT_EQ(get(pair.near, 16), kReplyKey);
  EXPECT_TRUE(ends(pair.near));
  pair.near.reset();
  for (const char* const function : {"red", "blue"})
    EXPECT_EQ(counter(function, "streams_closed", 1), 1u);
}

TEST_F(NICStreamsTest, NobodyListens) {
  start();
  const auto red = attach("red"), blue = attach("blue");
  const auto connecting = blue->connect(*red, free_port());
  ASSERT_EQ(connecting.body.error, 0);
  EXPECT_EQ(take(connecting.descriptor).body.error, ECONNREFUSED);
}

TEST_F(NICStreamsTest, APortIsOnesOwnUntilItsListenerIsClosed) {
  start();
  const auto red = attach("red");
  const u16 port = free_port();
  auto listener = red->listen(port);
  EXPECT_EQ(listener.body.error, 0);
  EXPECT_EQ(red->listen(port).body.error, EADDRINUSE);
  listener.descriptor.reset();
  EXPECT_EQ(counter("red", "listeners", 0), 0u);
  EXPECT_EQ(red->listen(port).body.error, 0);
}

// At once, so that no connection is accepted meanwhile. Only the tenant itself can close it.
TEST_F(NICStreamsTest, AListenerIsClosedOnRequest) {
  start();
  const auto red = attach("red"), other = attach("red");
  const u16 port = free_port();
  const auto listener = red->listen(port);
  const NICStreamRequest close{.call = NICStreamCall::kClose, .closed = listener.body.number};
  EXPECT_EQ(other->ask(close).body.error, 0);
  EXPECT_EQ(other->listen(port).body.error, EADDRINUSE);
  EXPECT_EQ(red->ask(close).body.error, 0);
  EXPECT_EQ(other->listen(port).body.error, 0);
}

TEST_F(NICStreamsTest, ForgedAddresses) {
  start();
  const auto red = attach("red"), blue = attach("blue");
  const u16 port = free_port();
  const auto listener = red->listen(port);
  for (const NICStreamCall call : {NICStreamCall::kListen, NICStreamCall::kConnect})
    EXPECT_EQ(blue->ask({.call = call, .ends = {red->address, red->address, 0, port}}).body.error,
              EACCES);
  EXPECT_EQ(blue->ask({.call = NICStreamCall::kConnect,
                       .ends = {blue->address, *GID::parse("0.0.0.0"), 0, port}})
                .body.error,
            EACCES);
  EXPECT_EQ(counter("blue", "streams_refused_source", 2), 2u);
  EXPECT_EQ(counter("blue", "streams_refused_destination", 1), 1u);
  EXPECT_FALSE(becomes_readable(listener.descriptor.get(), ms(20)));
}

TEST_F(NICStreamsTest, OnlyMPAPasses) {
  start();
  const auto red = attach("red"), blue = attach("blue");
  const Pair pair = connected(*blue, *red, free_port());
  put(pair.near, "GET / HTTP/1.0\r\n\r\n");
  EXPECT_EQ(counter("blue", "streams_refused_protocol", 1), 1u);
  EXPECT_TRUE(ends(pair.near));
  EXPECT_TRUE(ends(pair.far));
}

TEST_F(NICStreamsTest, ConnectionsAreLimited) {
  config_.functions[1].max_streams = 4;
  start();
  const auto red = attach("red"), blue = attach("blue");
  const u16 port = free_port();
  const auto listener = blue->listen(port);  // it counts, too
  std::vector<Pair> pairs;
  for (u32 i = 0; i < 3; ++i) pairs.push_back(connected(*blue, *red, free_port()));
  EXPECT_EQ(blue->connect(*red, port).body.error, ENOBUFS);
  EXPECT_EQ(blue->listen(0).body.error, ENOBUFS);
  const auto connecting = red->connect(*blue, port);  // which it does not accept
  ASSERT_EQ(connecting.body.error, 0);
  EXPECT_EQ(counter("blue", "streams_refused_limit", 3), 3u);
  EXPECT_FALSE(becomes_readable(listener.descriptor.get(), ms(20)));
  pairs.clear();
  EXPECT_EQ(counter("blue", "streams_closed", 3), 3u);
  connected(*blue, *red, free_port());
}

TEST_F(NICStreamsTest, RequestsInASecondAreLimited) {
  config_.functions[1].connections_per_second = 2;
  start();
  const auto red = attach("red"), blue = attach("blue");
  u64 refused = 0;
  for (u32 i = 0; i < 10; ++i)
    if (blue->connect(*red, free_port()).body.error == ECONNREFUSED) ++refused;
  EXPECT_GE(refused, 7u);
  EXPECT_EQ(counter("blue", "streams_refused_rate", refused), refused);
}

TEST_F(NICStreamsTest, RubbishCostsTheAttachmentAndNobodyElse) {
  start();
  for (const std::size_t size : {std::size_t{1}, sizeof(NICStreamRequest),
                                 sizeof(NICStreamRequest) + 1, std::size_t{4096}}) {
    const auto red = attach("red");
    const std::string rubbish(size, '\x5a');
    ASSERT_EQ(::send(red->socket(), rubbish.data(), size, MSG_NOSIGNAL),
              static_cast<ssize_t>(size));
    EXPECT_TRUE(ends(red->attachment.socket));
  }
  EXPECT_EQ(counter("red", "streams_refused_request", 4), 4u);
  EXPECT_EQ(counter("red", "stream_programs_detached", 4), 4u);
  check_that_others_go_on();
}

// A tenant that takes neither answers nor bytes, and whose descriptors block.
TEST_F(NICStreamsTest, NoDescriptorOfATenantMakesTheNICWait) {
  start();
  const auto red = attach("red"), blue = attach("blue");
  const Pair pair = connected(*blue, *red, free_port());
  for (const int fd : {red->socket(), pair.near.get(), pair.far.get()})
    ASSERT_EQ(::fcntl(fd, F_SETFL, 0), 0);
  put(pair.near, kRequestKey);
  fill(pair.near);
  const NICStreamRequest request{.call = NICStreamCall::kListen, .ends = {.local = red->address}};
  while (::send(red->socket(), &request, sizeof(request), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
    sleep_for(us(20));
  check_that_others_go_on();
}

TEST_F(NICStreamsTest, ATenantThatDoesNothingKeepsTheNICFromNoSleep) {
  start();
  const auto red = attach("red"), blue = attach("blue");
  Pair pair = connected(*blue, *red, free_port());
  const auto listener = red->listen(0);
  const auto connecting = blue->connect(*red, free_port());  // whose answer is not taken
  put(pair.near, kRequestKey);                               // nor these bytes
  ASSERT_EQ(::send(listener.descriptor.get(), "text", 4, MSG_NOSIGNAL), 4);
  sleep_for(ms(50));
  EXPECT_LT(computes_in(ms(200)), ms(50));
  ASSERT_EQ(::shutdown(pair.near.get(), SHUT_WR), 0);
  pair.far.reset();
  sleep_for(ms(50));
  EXPECT_LT(computes_in(ms(200)), ms(50));
}

TEST_F(NICStreamsTest, AnOrphanThatNobodyReadsEnds) {
  start();
  const auto red = attach("red"), blue = attach("blue");
  Pair pair = connected(*blue, *red, free_port());
  put(pair.near, kRequestKey);
  fill(pair.near);
  pair.near.reset();
  sleep_for(NICStreams::kOrphanPatience / 2);
  EXPECT_EQ(counter("blue", "streams", 1), 1u);
  EXPECT_EQ(counter("blue", "streams", 0), 0u);
}

TEST_F(NICStreamsTest, WhereTCPDoesNotGo) {
  config_.functions[0].vni = 5001;
  config_.functions[1].max_streams = 0;
  start();
  for (const auto& [function, wanted] :
       {std::pair("red", "function red has a vni, by which iWARP's TCP does not go"),
        std::pair("blue", "function blue has no iWARP: streams is 0")}) {
    const auto refused = attach_streams_to_nic(path_, function);
    ASSERT_FALSE(refused.has_value());
    EXPECT_NE(refused.error().message.find(wanted), std::string::npos) << refused.error().message;
  }
}

TEST_F(NICStreamsTest, ProgramsOfBothKindsAreCounted) {
  config_.functions[0].max_programs = 2;
  start();
  const auto one = attach("red"), two = attach("red");
  EXPECT_FALSE(attach_streams_to_nic(path_, "red").has_value());
  EXPECT_FALSE(attach_to_nic(path_, 0, "red").has_value());
  EXPECT_EQ(counter("red", "refused_programs", 2), 2u);
}

TEST_F(NICStreamsTest, ByTLS) {
  std::ofstream(key_) << "a key that only the NIC knows\n";
  config_.encryption = EncryptionSettings{.psk_file = key_};
  start();
  const auto red = attach("red"), blue = attach("blue");
  const u16 port = free_port();
  Pair pair = connected(*blue, *red, port);
  std::string much = kRequestKey + std::string(300'000, 'x');
  put(pair.near, much.substr(0, 100'000));
  EXPECT_EQ(get(pair.far, 100'000), much.substr(0, 100'000));
  put(pair.far, kReplyKey);
  EXPECT_EQ(get(pair.near, 16), kReplyKey);
  pair.near.reset();
  EXPECT_TRUE(ends(pair.far));
  // A peer in clear gets nowhere.
  const auto listener = red->listen(port);
  const Descriptor clear = connect_to({red->address, port}, {*GID::parse("127.88.3.9"), 0}, 0);
  pollfd connecting{.fd = clear.get(), .events = POLLOUT, .revents = 0};
  ASSERT_EQ(::poll(&connecting, 1, 3000), 1);
  put(clear, kRequestKey + "\0\0\0\0");
  EXPECT_EQ(counter("red", "streams_refused_handshake", 1), 1u);
  EXPECT_FALSE(becomes_readable(listener.descriptor.get(), ms(20)));
}

// One function has its maximum within 20 %; two others share the rest by weight.
TEST_F(NICStreamsTest, Rates) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer is too slow for the rates";
#endif
  config_.rate_bps = 200'000'000;
  config_.functions[1].weight = 3;
  config_.functions.push_back({.name = "green", .address = "127.88.3.3", .max_bps = 40'000'000});
  start();
  const auto sink = attach("red");
  std::vector<std::unique_ptr<Tenant>> tenants;
  std::vector<Pair> pairs;
  for (const char* const function : {"red", "blue", "green"}) {
    tenants.push_back(attach(function));
    pairs.push_back(connected(*tenants.back(), *sink, free_port()));
    put(pairs.back().near, kRequestKey);
  }
  std::vector<u64> received(3);
  const std::string much(64 << 10, 'x');
  std::string room(1 << 20, '\0');
  const auto flood = [&](Duration time) {
    for (const Time end = monotonic_now() + time; monotonic_now() < end; sleep_for(us(200)))
      for (std::size_t i = 0; i < pairs.size(); ++i) {
        while (::send(pairs[i].near.get(), much.data(), much.size(), MSG_DONTWAIT) > 0) {
        }
        const ssize_t got = ::recv(pairs[i].far.get(), room.data(), room.size(), MSG_DONTWAIT);
        if (got > 0) received[i] += static_cast<u64>(got);
      }
  };
  flood(ms(500));  // the bursts
  received.assign(3, 0);
  flood(sec(1));
  const auto mbps = [&](std::size_t i) { return static_cast<double>(received[i]) * 8 / 1e6; };
  EXPECT_NEAR(mbps(2), 40, 8);
  EXPECT_NEAR(mbps(1) / mbps(0), 3, 0.6);
  EXPECT_NEAR(mbps(0) + mbps(1) + mbps(2), 200, 40);
}

std::size_t descriptors_of_process() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

TEST_F(NICStreamsTest, TenantsThatEndLeaveNothing) {
  start();
  { const auto red = attach("red"); }
  EXPECT_EQ(counter("red", "stream_programs_detached", 1), 1u);
  const std::size_t before = descriptors_of_process();
  for (u32 i = 0; i < 50; ++i) {
    const auto red = attach("red"), blue = attach("blue");
    const Pair pair = connected(*blue, *red, free_port());
    const auto listener = red->listen(0);
    const auto connecting = blue->connect(*red, 1);
    put(pair.near, kRequestKey);
  }
  EXPECT_EQ(counter("red", "stream_programs_detached", 51), 51u);
  for (const Time end = monotonic_now() + kStreamsPatience; monotonic_now() < end; sleep_for(ms(2)))
    if (descriptors_of_process() <= before) break;
  EXPECT_LE(descriptors_of_process(), before);
}

}  // namespace
}  // namespace verbena::host
