// Tests UDPSender when the kernel refuses: no segmentation, datagrams too long, no route.
#include "host/links/udp_sender.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/net_tstamp.h>
#include <poll.h>
#include <sys/mman.h>

#include <numeric>

#include "base/bytes.h"
#include "host/links/datagram_receiver.h"
#include "host/links/families_for_test.h"
#include "host/os/memory_faults.h"
#include "host/os/socket_option.h"
#include "wire/roce/icrc.h"
#include "wire/roce/source_port.h"

namespace verbena::host {
namespace {

class UDPSenderTest : public testing::TestWithParam<const char*> {
 protected:
  UDPSenderTest()
      : address_(choose_local_addresses(GetParam())->front()),
        gid_(address_.ipv4 ? *address_.ipv4 : *address_.ipv6),
        ports_(std::move(*SourcePorts::open(gid_, address_.interface_index))),
        receiver_(std::move(*DatagramReceiver::open(gid_, address_.interface_index))),
        sender_(address_, {ports_.get()}, counters_),
        bytes_(60000) {
    EXPECT_TRUE(receiver_.bind().has_value());
    std::iota(bytes_.begin(), bytes_.end(), u8{1});
  }

  EgressFrame frame(std::size_t payload_size) const {
    EgressFrame frame;
    frame.source = frame.destination = gid_;
    frame.udp_source_port = kFirstSourcePort;
    BTH bth;
    bth.opcode = {Service::kUC, Op::kSendOnly};
    bth.dest_qp = QPN{77};
    bth.encode(std::span(frame.headers).first<BTH::kSize>());
    frame.headers_size = BTH::kSize;
    frame.payload.add(std::span(bytes_).first(payload_size));
    return frame;
  }
  EgressFrame train(u32 packets, std::size_t payload_size) const {
    EgressFrame train = frame(packets * payload_size);
    train.packets = packets;
    return train;
  }
  EgressFrame frame_without_route() const {  // nothing leads there from a loopback address
    EgressFrame lost = frame(100);
    lost.destination = gid_.is_ipv4() ? *GID::parse("198.51.100.9") : *GID::parse("fe80::9");
    return lost;
  }
  // Receives frames with so much payload, in this order and each with the right ICRC.
  void expect_frames(const std::vector<std::size_t>& payload_sizes) {
    expect_frames(payload_sizes.size());
    EXPECT_EQ(received_sizes_, payload_sizes);
  }
  // Receives `count` frames, each with the right ICRC.
  void expect_frames(std::size_t count) {
    received_sizes_.clear();
    std::size_t got = 0;
    pollfd waiting{.fd = receiver_.fd(), .events = POLLIN, .revents = 0};
    while (got < count && ::poll(&waiting, 1, 5000) == 1) {
      ASSERT_TRUE(receiver_.receive(counters_));
      for (IngressFrame in; receiver_.poll_frame(in); ++got) {
        const auto transport = in.transport.first(in.transport.size() - kICRCSize);
        in.identification = static_cast<u16>(in.identification + first_identification_);
        std::array<u8, kICRCSize> icrc{};
        store_icrc(icrc_of({.source = in.source,
                            .destination = in.destination,
                            .udp_source_port = in.udp_source_port,
                            .identification = in.identification},
                           transport),
                   icrc);
        EXPECT_TRUE(std::equal(icrc.begin(), icrc.end(), in.transport.end() - kICRCSize));
        received_sizes_.push_back(transport.size() - BTH::kSize);
        received_hop_limits_.push_back(in.hop_limit);
      }
    }
    EXPECT_EQ(got, count);
  }

  SourcePort& port() { return ports_->get(kFirstSourcePort); }
  bool is_connected() {
    sockaddr_storage peer;
    socklen_t size = sizeof(peer);
    return ::getpeername(port().fd(), reinterpret_cast<sockaddr*>(&peer), &size) == 0;
  }
  void send_until_connected() {
    for (u32 i = 0; i < SourcePort::kSteady; ++i) {
      EXPECT_FALSE(is_connected());
      sender_.append(frame(8));
      sender_.flush();
    }
    EXPECT_TRUE(is_connected());
    expect_frames(SourcePort::kSteady);
  }

  LocalAddress address_;
  GID gid_;
  LinkCounters counters_;
  std::unique_ptr<SourcePorts> ports_;
  DatagramReceiver receiver_;
  UDPSender sender_;
  std::vector<u8> bytes_;
  std::vector<std::size_t> received_sizes_;
  std::vector<u8> received_hop_limits_;
  u16 first_identification_ = 0;  // of the datagrams that are expected
};

// The kernel does not segment for an IPv4 socket without checksums.
class UDPSenderIPv4Test : public UDPSenderTest {};
TEST_P(UDPSenderIPv4Test, WithoutSegmentationFramesGoOneByOne) {
  ASSERT_TRUE(set_option(ports_->get(kFirstSourcePort).fd(), SOL_SOCKET, SO_NO_CHECK, 1));
  for (int i = 0; i < 5; ++i) sender_.append(frame(4096));
  sender_.append(frame(512));
  sender_.flush();
  EXPECT_EQ(counters_.segmentation_refused, 1u);
  EXPECT_EQ(counters_.sent_bursts, 6u);
  expect_frames(6);
  for (int i = 0; i < 3; ++i) sender_.append(frame(4096));  // it is remembered
  sender_.flush();
  EXPECT_EQ(counters_.segmentation_refused, 1u);
  EXPECT_EQ(counters_.sent_bursts, 9u);
  expect_frames(3);
  sender_.append(train(4, 1024));
  sender_.flush();
  EXPECT_EQ(counters_.sent_bursts, 13u);
  expect_frames({1024, 1024, 1024, 1024});
  EXPECT_EQ(counters_.send_dropped, 0u);
}

TEST_P(UDPSenderTest, ATrainTakesAsManyBurstsAsItNeeds) {
  sender_.append(frame(4112));  // with which one of the train fits in a burst
  for (int i = 0; i < 2; ++i) sender_.append(train(kLongestTrain - 2, 4096));
  sender_.flush();
  EXPECT_EQ(counters_.sent_frames, 1 + 2 * (kLongestTrain - 2));
  EXPECT_EQ(counters_.sent_bursts, 3u);
  expect_frames(1 + 2 * (kLongestTrain - 2));
  EXPECT_EQ(counters_.send_dropped, 0u);
}

// The longer one first: the kernel cuts all segments but the last to one length.
TEST_P(UDPSenderTest, ARequestAndAnAcknowledgementBeforeItShareABurst) {
  EgressFrame acknowledgement = frame(4);
  acknowledgement.urgency = Urgency::kWithReply;
  sender_.append(acknowledgement);
  EXPECT_TRUE(sender_.may_wait());
  sender_.append(frame(24));
  EXPECT_FALSE(sender_.may_wait());
  sender_.append(frame(24));  // none may follow what is shorter
  sender_.flush();
  EXPECT_EQ(counters_.sent_bursts, 2u);
  expect_frames({24, 4, 24});
  sender_.append(frame(4));  // as short, but it is not said that another may overtake it
  sender_.append(frame(24));
  sender_.flush();
  expect_frames({4, 24});
}

TEST_P(UDPSenderTest, AnAcknowledgementStaysWhereARequestThatWouldOvertakeItHasGone) {
  survive_memory_faults();
  void* const page = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  EgressFrame acknowledgement = frame(4), gone = frame(0);
  acknowledgement.urgency = Urgency::kWithReply;
  gone.payload.add({static_cast<const u8*>(page), 64});
  sender_.append(acknowledgement);
  sender_.append(gone);
  sender_.append(acknowledgement);
  sender_.flush();
  EXPECT_EQ(counters_.send_dropped, 1u);
  EXPECT_EQ(counters_.sent_bursts, 1u);
  expect_frames({4, 4});
  ::munmap(page, 4096);
}

TEST_P(UDPSenderTest, EachFrameHasItsHopLimit) {
  constexpr u8 kOfTheHost = 0;
  for (int round = 0; round < 2; ++round) {
    for (const u8 hop_limit : {u8{255}, u8{255}, u8{7}, u8{64}, u8{1}, kOfTheHost}) {
      EgressFrame one = frame(16);
      one.hop_limit = hop_limit;
      sender_.append(one);
    }
    sender_.flush();
  }
  expect_frames(12);
  EXPECT_THAT(received_hop_limits_,
              testing::ElementsAre(255, 255, 7, 64, 1, 64, 255, 255, 7, 64, 1, 64));
}

TEST_P(UDPSenderTest, LargeFramesGoAlone) {
  for (int i = 0; i < 3; ++i) sender_.append(frame(59999));
  sender_.flush();
  EXPECT_EQ(counters_.sent_bursts, 3u);
  expect_frames(3);
}

TEST_P(UDPSenderTest, NoRouteIsALossAndNoMore) {
  sender_.append(frame_without_route());
  sender_.flush();
  EXPECT_EQ(counters_.sent_frames, 0u);
  EXPECT_EQ(counters_.send_dropped, 1u);
  sender_.append(frame(100));
  sender_.flush();
  expect_frames(1);
}

TEST_P(UDPSenderTest, AFrameWhosePayloadHasGoneIsDroppedAlone) {
  survive_memory_faults();
  void* const page = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  EgressFrame gone = frame(0);
  gone.payload.add({static_cast<const u8*>(page), 2048});
  EgressFrame half_gone = frame(64);
  half_gone.payload.add({static_cast<const u8*>(page), 64});
  sender_.append(frame(2048));
  sender_.append(gone);
  sender_.append(half_gone);
  sender_.append(frame(2048));
  sender_.append(frame(128));
  gone.packets = 2;
  sender_.append(gone);
  sender_.flush();
  EXPECT_EQ(counters_.send_dropped, 4u);
  expect_frames(3);
  ::munmap(page, 4096);
}

// The kernel shows what it sends, and its Identification is the one that the ICRC was made for.
TEST_P(UDPSenderTest, ConnectedWhereItHasSentForAWhileItKnowsTheKernelsCount) {
  send_until_connected();
  const u32 shown = SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_TX_SCHED;
  ASSERT_TRUE(set_option(port().fd(), SOL_SOCKET, SO_TIMESTAMPING, shown));
  for (int round = 0; round < 200; ++round) {
    const std::size_t frames = round % 3 == 0 ? 5 : 1;
    for (std::size_t i = 0; i < frames; ++i) sender_.append(frame(8));
    sender_.flush();
    std::array<u8, 2048> bytes{};
    const ssize_t size =
        ::recv(port().fd(), bytes.data(), bytes.size(), MSG_ERRQUEUE | MSG_DONTWAIT);
    ASSERT_GT(size, 0);
    if (gid_.is_ipv4()) first_identification_ = load_be16(bytes.data() + 14 + 4);
    expect_frames(frames);
  }
}

TEST_P(UDPSenderTest, WhatTheKernelRefusesEndsTheConnectionAndItIsMadeAgain) {
  send_until_connected();
  sender_.append(frame_without_route());
  sender_.flush();
  EXPECT_EQ(counters_.send_dropped, 1u);
  EXPECT_FALSE(is_connected());
  send_until_connected();
}

TEST_P(UDPSenderTest, OneIsRefusedAndThoseBehindItInTheSameFlushGo) {
  send_until_connected();
  sender_.append(frame_without_route());
  sender_.append(frame(8));
  for (int i = 0; i < 3; ++i) sender_.append(frame(1000));
  sender_.flush();
  EXPECT_EQ(counters_.send_dropped, 1u);
  EXPECT_EQ(counters_.sent_frames, SourcePort::kSteady + 4);
}

// The socket itself cuts datagrams of one segment size for a while; the others go as before.
TEST_P(UDPSenderTest, DatagramsOfAllKindsAmongMany) {
  for (u32 round = 0; round < 3 * SourcePort::kSteadySegments; ++round) {
    const std::size_t size = round % 40 < 20 ? 8 : 24;
    std::vector<std::size_t> sizes = {size, size, size, 4};
    if (round % 7 == 0) sizes = {100};
    if (round % 11 == 0) sizes = {2000, 2000};
    for (const std::size_t one : sizes) sender_.append(frame(one));
    sender_.flush();
    expect_frames(sizes);
  }
  EXPECT_EQ(counters_.segmentation_refused, 0u);
}

// A later call of a connected socket returns the ICMP error.
TEST_P(UDPSenderTest, WhereNobodyListensNothingElseIsLost) {
  receiver_.close();
  constexpr u32 kFrames = 3 * SourcePort::kSteady;
  for (u32 i = 0; i < kFrames; ++i) {
    sender_.append(frame(8));
    sender_.flush();
  }
  EXPECT_TRUE(is_connected());
  EXPECT_EQ(counters_.sent_frames, kFrames);
  EXPECT_EQ(counters_.send_dropped, 0u);
}

TEST_P(UDPSenderTest, ManySourcePortsFewSockets) {
  for (u32 i = 0; i < 1000; ++i) {
    EgressFrame one = frame(16);
    one.udp_source_port = static_cast<u16>(kFirstSourcePort + i * 13 % 0x4000);
    const SourcePort& port = ports_->get(one.udp_source_port);
    EXPECT_GE(port.number(), kFirstSourcePort);
    EXPECT_EQ(&ports_->get(one.udp_source_port), &port);
    sender_.append(one);
    sender_.flush();
    expect_frames(1);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, UDPSenderTest, testing::Values("127.0.0.74", "::1"),
                         test::family_name);
INSTANTIATE_TEST_SUITE_P(Families, UDPSenderIPv4Test, testing::Values("127.0.0.74"),
                         test::family_name);

}  // namespace
}  // namespace verbena::host
