// Frames of all sizes and both families from one UDPLink to another on this host: byte for byte,
// each with the right ICRC, and in as few calls as the kernel allows.
#include "host/links/udp_link.h"

#include <gtest/gtest.h>
#include <netinet/udp.h>
#include <poll.h>

#include <cstring>
#include <numeric>

#include "base/bytes.h"
#include "host/links/families_for_test.h"
#include "host/network/socket_address.h"
#include "host/os/clock.h"
#include "host/os/descriptor.h"
#include "host/os/socket_option.h"
#include "host/sharing/qpn_slot.h"
#include "wire/roce/icrc.h"
#include "wire/roce/source_port.h"

namespace verbena::host {
namespace {

constexpr Duration kPatience = sec(5);

LocalAddress loopback(const char* ip) {
  const auto chosen = choose_local_addresses(ip);
  EXPECT_TRUE(chosen.has_value()) << (chosen ? "" : chosen.error().message);
  return chosen->front();
}

std::unique_ptr<UDPLink> open_link(const LocalAddress& address) {
  auto link = UDPLink::open(address, 100);
  EXPECT_TRUE(link.has_value()) << (link ? "" : link.error().message);
  return std::move(*link);
}

// A frame for QP `index` of `to`, with `payload` behind a bare BTH.
EgressFrame frame_to(const GID& source, const GID& destination, u32 qpn,
                     std::span<const u8> payload) {
  EgressFrame frame;
  frame.source = source;
  frame.destination = destination;
  frame.udp_source_port = kFirstSourcePort + 7;
  BTH bth;
  bth.opcode = {Service::kRC, Op::kSendOnly};
  bth.dest_qp = QPN{qpn};
  bth.pad_count = static_cast<u8>(-payload.size() & 3);
  bth.encode(std::span(frame.headers).first<BTH::kSize>());
  frame.headers_size = BTH::kSize;
  frame.pad_count = bth.pad_count;
  frame.payload.add(payload);
  return frame;
}

std::vector<u8> pattern(std::size_t size, u8 seed) {
  std::vector<u8> bytes(size);
  std::iota(bytes.begin(), bytes.end(), seed);
  return bytes;
}

struct ReceivedFrame {
  IngressFrame addressing;
  std::vector<u8> transport;
};

// Receives until `count` frames are there, or patience is at its end.
std::vector<ReceivedFrame> receive(UDPLink& link, std::size_t count) {
  std::vector<ReceivedFrame> frames;
  const Time deadline = monotonic_now() + kPatience;
  while (frames.size() < count && monotonic_now() < deadline) {
    if (!link.receive(Look::kEverywhere)) {
      std::vector<pollfd> waiting;
      for (const int fd : link.descriptors()) waiting.push_back({fd, POLLIN, 0});
      ::poll(waiting.data(), waiting.size(), 10);
      continue;
    }
    for (IngressFrame frame; link.poll_frame(frame, monotonic_now());)
      frames.push_back({frame, {frame.transport.begin(), frame.transport.end()}});
  }
  return frames;
}

void expect_equal(const EgressFrame& sent, const ReceivedFrame& got) {
  ASSERT_EQ(got.transport.size(), sent.transport_size() + kICRCSize);
  EXPECT_TRUE(std::equal(sent.headers.begin(), sent.headers.begin() + sent.headers_size,
                         got.transport.begin()));
  std::size_t at = sent.headers_size;
  for (u32 i = 0; i < sent.payload.count; ++i) {
    const Bytes part = sent.payload.parts[i];
    EXPECT_EQ(std::memcmp(part.data(), got.transport.data() + at, part.size()), 0) << i;
    at += part.size();
  }
  for (std::size_t i = 0; i < sent.pad_count; ++i) EXPECT_EQ(got.transport[at + i], 0);
  const RoCEv2Envelope envelope{.source = got.addressing.source,
                                .destination = got.addressing.destination,
                                .udp_source_port = got.addressing.udp_source_port,
                                .identification = got.addressing.identification};
  std::array<u8, kICRCSize> icrc{};
  store_icrc(icrc_of(envelope, std::span(got.transport).first(sent.transport_size())), icrc);
  EXPECT_TRUE(std::equal(icrc.begin(), icrc.end(), got.transport.end() - kICRCSize));
  EXPECT_EQ(got.addressing.source, sent.source);
  EXPECT_EQ(got.addressing.destination, sent.destination);
  EXPECT_EQ(got.addressing.traffic_class, sent.traffic_class);
  EXPECT_EQ(got.addressing.hop_limit, sent.hop_limit);
  EXPECT_FALSE(got.addressing.identification_known);
}

class UDPLinkTest : public testing::TestWithParam<const char*> {
 protected:
  UDPLinkTest() : address_(loopback(GetParam())), link_(open_link(address_)) {}

  GID gid() const { return address_.ipv4 ? *address_.ipv4 : *address_.ipv6; }
  u32 own_qpn() const { return first_qpn_of(link_->slot()).value; }
  EgressFrame frame(std::span<const u8> payload) const {
    return frame_to(gid(), gid(), own_qpn(), payload);
  }

  LocalAddress address_;
  std::unique_ptr<UDPLink> link_;
};

TEST_P(UDPLinkTest, FramesOfAllSizesArriveWithTheirICRC) {
  const std::vector<u8> bytes = pattern(5000, 3);
  for (const std::size_t size :
       {0u, 1u, 2u, 3u, 4u, 63u, 64u, 255u, 256u, 1023u, 1024u, 1025u, 2048u, 4095u, 4096u}) {
    const EgressFrame sent = frame(std::span(bytes).first(size));
    link_->append(sent);
    link_->flush();
    const auto got = receive(*link_, 1);
    ASSERT_EQ(got.size(), 1u) << size;
    expect_equal(sent, got[0]);
  }
}

TEST_P(UDPLinkTest, EqualFramesGoInOneBurst) {
  const std::vector<u8> bytes = pattern(4096, 9);
  std::vector<EgressFrame> sent;
  sent.reserve(16);
  for (int i = 0; i < 15; ++i) sent.push_back(frame(bytes));
  sent.push_back(frame(std::span(bytes).first(100)));  // shorter: the last of the burst
  for (const EgressFrame& one : sent) link_->append(one);
  link_->flush();
  const auto got = receive(*link_, sent.size());
  ASSERT_EQ(got.size(), sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) {
    expect_equal(sent[i], got[i]);
    EXPECT_EQ(got[i].addressing.identification, i);
  }
  EXPECT_EQ(link_->counters().sent_bursts, 1u);
  EXPECT_EQ(link_->counters().sent_frames, 16u);
  EXPECT_EQ(link_->counters().segmentation_refused, 0u);
}

TEST_P(UDPLinkTest, SmallFramesComeSixtyFourInABurst) {
  const std::vector<u8> bytes = pattern(8, 1);
  for (int i = 0; i < 200; ++i) link_->append(frame(bytes));
  link_->flush();
  EXPECT_EQ(receive(*link_, 200).size(), 200u);
  EXPECT_EQ(link_->counters().sent_bursts, 4u);  // 64 + 64 + 64 + 8
}

TEST_P(UDPLinkTest, UnstablePayloadIsCopiedBeforeItsICRC) {
  std::vector<u8> bytes = pattern(4096, 5);
  EgressFrame changing = frame(bytes);
  changing.payload_is_stable = false;
  link_->append(changing);
  const std::vector<u8> before = bytes;
  std::ranges::fill(bytes, u8{0xee});
  link_->flush();
  const auto got = receive(*link_, 1);
  ASSERT_EQ(got.size(), 1u);
  expect_equal(frame(before), got[0]);
}

TEST_P(UDPLinkTest, GathersManyPieces) {
  const std::vector<u8> bytes = pattern(4096, 7);
  EgressFrame sent = frame({});
  for (u32 i = 0; i < 8; ++i) sent.payload.add(std::span(bytes).subspan(i * 40, 1 + i));
  sent.payload.add(std::span(bytes).first(1500));
  sent.payload.add(std::span(bytes).last(1025));
  sent.pad_count = static_cast<u8>(-sent.payload.size_bytes & 3);
  for (int i = 0; i < 3; ++i) link_->append(sent);
  link_->flush();
  const auto got = receive(*link_, 3);
  ASSERT_EQ(got.size(), 3u);
  for (const ReceivedFrame& one : got) expect_equal(sent, one);
}

TEST_P(UDPLinkTest, CarriesTrafficClassAndHopLimit) {
  const std::vector<u8> bytes = pattern(32, 7);
  EgressFrame sent = frame(bytes);
  sent.traffic_class = 0x6a;  // DSCP 26, ECT(0)
  sent.hop_limit = 9;
  link_->append(sent);
  EgressFrame plain = frame(bytes);
  link_->append(plain);
  link_->flush();
  const auto got = receive(*link_, 2);
  ASSERT_EQ(got.size(), 2u);
  expect_equal(sent, got[0]);
  expect_equal(plain, got[1]);
}

TEST_P(UDPLinkTest, SourcePortStaysWithItsQP) {
  const std::vector<u8> bytes = pattern(16, 7);
  EgressFrame first = frame(bytes), second = frame(bytes);
  second.udp_source_port = kFirstSourcePort + 0x1234;
  for (int i = 0; i < 2; ++i) {
    link_->append(first);
    link_->append(second);
    link_->flush();
  }
  const auto got = receive(*link_, 4);
  ASSERT_EQ(got.size(), 4u);
  EXPECT_EQ(got[0].addressing.udp_source_port, got[2].addressing.udp_source_port);
  EXPECT_EQ(got[1].addressing.udp_source_port, got[3].addressing.udp_source_port);
  EXPECT_NE(got[0].addressing.udp_source_port, got[1].addressing.udp_source_port);
}

TEST_P(UDPLinkTest, FramesOfAForeignSourceAreNotSent) {
  EgressFrame wrong = frame({});
  wrong.source = *GID::parse("192.0.2.77");
  link_->append(wrong);
  link_->flush();
  EXPECT_EQ(link_->counters().send_dropped, 1u);
  EXPECT_EQ(link_->counters().sent_frames, 0u);
}

// A UDP checksum of 0, as cards and Linux's soft-RoCE send it over both families.
TEST_P(UDPLinkTest, AFrameWithoutUDPChecksumArrives) {
  const bool ipv4 = gid().is_ipv4();
  const Descriptor fd(::socket(family_of(gid()), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ASSERT_TRUE(ipv4 ? set_option(fd.get(), SOL_SOCKET, SO_NO_CHECK, 1)
                   : set_option(fd.get(), SOL_UDP, UDP_NO_CHECK6_TX, 1));
  const EgressFrame sent = frame({});
  std::vector<u8> bytes(sent.headers.begin(), sent.headers.begin() + sent.headers_size);
  bytes.resize(bytes.size() + kICRCSize);
  const SocketAddress to(gid(), kRoCEv2Port, 0);
  ASSERT_EQ(::sendto(fd.get(), bytes.data(), bytes.size(), 0, to.data(), to.size()),
            static_cast<ssize_t>(bytes.size()));
  const std::vector<ReceivedFrame> got = receive(*link_, 1);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got.front().transport, bytes);
}

TEST_P(UDPLinkTest, AfterLeavingNothingIsSentOrReceived) {
  link_->leave();
  link_->append(frame({}));
  link_->flush();
  EXPECT_FALSE(link_->receive(Look::kEverywhere));
  EXPECT_EQ(link_->counters().sent_frames, 0u);
}

INSTANTIATE_TEST_SUITE_P(Families, UDPLinkTest, testing::Values("127.0.0.72", "::1"),
                         test::family_name);

}  // namespace
}  // namespace verbena::host
