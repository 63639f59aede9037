// The frames that one source sends for a while arrive through a socket of their own: in order,
// without loss, with their addresses, and without taking the frames of other sources.
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "host/links/udp_link.h"
#include "host/network/socket_address.h"
#include "host/os/clock.h"
#include "host/os/descriptor.h"
#include "host/os/socket_option.h"
#include "host/sharing/qpn_slot.h"
#include "wire/roce/icrc.h"

namespace verbena::host {
namespace {

constexpr const char* kAddress = "127.0.0.73";
constexpr u32 kFrameBytes = 32, kNumberAt = 12;
constexpr u8 kHopLimit = 33;
constexpr u32 kLong = 3 * SteadySource::kSteady;

std::unique_ptr<UDPLink> open_link(u64 random) {
  auto link = UDPLink::open(choose_local_addresses(kAddress)->front(), random);
  EXPECT_TRUE(link.has_value()) << (link ? "" : link.error().message);
  return std::move(*link);
}

// One UDP port of another host that sends numbered frames.
class Peer {
 public:
  explicit Peer(const char* address) : address_(*GID::parse(address)) {
    const SocketAddress any_port(address_, 0, 0);
    EXPECT_EQ(::bind(socket_.get(), any_port.data(), any_port.size()), 0);
    EXPECT_TRUE(set_option(socket_.get(), IPPROTO_IP, IP_TTL, int{kHopLimit}));
  }
  [[nodiscard]] const GID& address() const { return address_; }
  void send_to(const UDPLink& link) {
    std::array<u8, kFrameBytes> frame{};
    BTH bth;
    bth.dest_qp = first_qpn_of(link.slot());
    bth.encode(std::span(frame).first<BTH::kSize>());
    store_be32(frame.data() + kNumberAt, sent_++);
    const SocketAddress to(*GID::parse(kAddress), kRoCEv2Port, 0);
    EXPECT_EQ(::sendto(socket_.get(), frame.data(), frame.size(), 0, to.data(), to.size()),
              ssize_t{kFrameBytes});
  }

 private:
  Descriptor socket_{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  GID address_;
  u32 sent_ = 0;
};

struct Received {
  GID source;
  u8 hop_limit;
  u32 number;
};

// All that is there.
std::vector<Received> receive(UDPLink& link) {
  std::vector<Received> received;
  while (link.receive(Look::kEverywhere))
    for (IngressFrame frame; link.poll_frame(frame, monotonic_now());) {
      EXPECT_EQ(frame.transport.size(), kFrameBytes);
      received.push_back(
          {frame.source, frame.hop_limit, load_be32(frame.transport.data() + kNumberAt)});
    }
  return received;
}

void expect_next(UDPLink& link, const Peer& peer, u32& number) {
  const std::vector<Received> received = receive(link);
  ASSERT_FALSE(received.empty()) << "after " << number;
  for (const Received& one : received) {
    ASSERT_EQ(one.number, number++);
    ASSERT_EQ(one.source, peer.address());
    ASSERT_EQ(one.hop_limit, kHopLimit);
  }
}

// Until the link follows it: frames one by one, and more of them on their way when it begins.
void send_long(Peer& peer, UDPLink& link, u32& number) {
  for (u32 i = 0; i < kLong; ++i) {
    for (u32 more = 0; more <= i % 3; ++more) peer.send_to(link);
    ASSERT_NO_FATAL_FAILURE(expect_next(link, peer, number));
  }
}

TEST(FollowerTest, WhoSendsForAWhileIsFollowed) {
  const auto link = open_link(100);
  Peer peer("127.0.0.74");
  u32 number = 0;
  for (u32 i = 0; i + 1 < SteadySource::kSteady; ++i) {
    peer.send_to(*link);
    expect_next(*link, peer, number);
  }
  EXPECT_FALSE(link->follows());
  send_long(peer, *link, number);
  EXPECT_TRUE(link->follows());
}

TEST(FollowerTest, OthersAreHeardBesideAndFollowedAfterwards) {
  const auto link = open_link(100);
  Peer first("127.0.0.74"), second("127.0.0.75");
  u32 of_first = 0, of_second = 0;
  send_long(first, *link, of_first);
  second.send_to(*link);
  expect_next(*link, second, of_second);
  send_long(second, *link, of_second);
  first.send_to(*link);
  expect_next(*link, first, of_first);
  send_long(first, *link, of_first);
}

TEST(FollowerTest, ThisHostItselfIsNotFollowed) {
  const auto link = open_link(100);
  Peer self(kAddress);
  u32 number = 0;
  send_long(self, *link, number);
  EXPECT_FALSE(link->follows());
}

TEST(FollowerTest, WhoSendsToAnotherProcessTooIsFollowedNoMore) {
  const auto ours = open_link(100), theirs = open_link(200);
  Peer peer("127.0.0.74");
  u32 number = 0;
  send_long(peer, *ours, number);
  ASSERT_TRUE(ours->follows());
  peer.send_to(*theirs);
  EXPECT_TRUE(receive(*ours).empty());  // hands it on
  expect_next(*theirs, peer, number);
  EXPECT_FALSE(ours->follows());
  for (u32 i = 0; i < 2 * kLong; ++i) {
    UDPLink &link = i % 2 == 0 ? *ours : *theirs, &other = i % 2 == 0 ? *theirs : *ours;
    peer.send_to(link);
    EXPECT_TRUE(receive(other).empty());  // hands on what it follows
    ASSERT_NO_FATAL_FAILURE(expect_next(link, peer, number));
  }
  EXPECT_FALSE(ours->follows() || theirs->follows());
  EXPECT_EQ(ours->counters().handed_on, 1u);
  EXPECT_LE(theirs->counters().handed_on, 1u);
}

}  // namespace
}  // namespace verbena::host
