// Tests links on virtual functions of a NIC in this process: what waits, and what arrives.
#include "host/links/nic/nic_link.h"

#include <gtest/gtest.h>

#include <numeric>

#include "host/nic/nic_for_test.h"
#include "host/sharing/qpn_slot.h"
#include "transport/train.h"
#include "wire/ib/aeth.h"
#include "wire/ib/deth.h"

namespace verbena::host {
namespace {

class NICLinkTest : public NICTest {
 protected:
  void SetUp() override {
    config_.functions = {{.name = "red", .address = "127.88.2.1", .has_multicast = true},
                         {.name = "blue", .address = "127.88.2.2", .has_multicast = true}};
    start();
    for (const bool is_red : {true, false}) {
      auto link = NICLink::open(path_, is_red ? "red" : "blue");
      ASSERT_TRUE(link.has_value()) << link.error().message;
      (is_red ? red_ : blue_) = std::move(*link);
    }
  }
  EgressFrame frame_of(Op op, std::span<const u8> payload, Urgency urgency) {
    EgressFrame frame;
    frame.source = *GID::parse("127.88.2.1");
    frame.destination = *GID::parse("127.88.2.2");
    frame.udp_source_port = 0xc001;
    frame.urgency = urgency;
    BTH{.opcode = {Service::kRC, op},
        .dest_qp = first_qpn_of(blue_->function().slot),
        .psn = PSN{psn_}}
        .encode(std::span(frame.headers).first<BTH::kSize>());
    frame.headers_size = BTH::kSize;
    frame.payload.add(payload);
    return frame;
  }
  // Returns the packets that arrive, at most `count`, within a while.
  std::vector<std::vector<u8>> arrivals(std::size_t count, Duration patience = sec(3)) {
    std::vector<std::vector<u8>> got;
    for (const Time end = monotonic_now() + patience; got.size() < count && monotonic_now() < end;
         sleep_for(us(200))) {
      (void)blue_->receive(Look::kEverywhere);
      for (IngressFrame frame; blue_->poll_frame(frame, monotonic_now());)
        got.emplace_back(frame.transport.begin(), frame.transport.end());
    }
    return got;
  }

  std::unique_ptr<NICLink> red_, blue_;
  u32 psn_ = kMask24 - 5;  // it wraps around
};

// An acknowledgement waits in the ring, and nobody sees it before the request goes.
TEST_F(NICLinkTest, AnAcknowledgementWaitsForTheReply) {
  const std::vector<u8> payload(64, 5), aeth(AETH::kSize);
  red_->append(frame_of(Op::kAcknowledge, aeth, Urgency::kWithReply));
  EXPECT_TRUE(red_->may_wait());
  EXPECT_TRUE(arrivals(1, ms(20)).empty());
  red_->append(frame_of(Op::kSendOnly, payload, Urgency::kNow));
  EXPECT_FALSE(red_->may_wait());
  red_->flush();
  EXPECT_TRUE(red_->may_wait());
  EXPECT_EQ(arrivals(2).size(), 2u);
  for (u32 i = 0; i < 64; ++i) red_->append(frame_of(Op::kSendOnly, payload, Urgency::kWithMore));
  EXPECT_FALSE(red_->may_wait());  // enough for a call
  red_->flush();
  EXPECT_EQ(arrivals(64).size(), 64u);
}

TEST_F(NICLinkTest, ATrainArrivesAsItsPackets) {
  constexpr std::size_t kSize = 1024;
  std::vector<u8> payload(kLongestTrain * kSize);
  for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<u8>(i / kSize + i * 3);
  EgressFrame train = frame_of(Op::kRDMAWriteMiddle, payload, Urgency::kNow);
  train.packets = kLongestTrain;
  red_->append(train);
  red_->flush();
  const std::vector<std::vector<u8>> got = arrivals(kLongestTrain);
  ASSERT_EQ(got.size(), kLongestTrain);
  for (u32 i = 0; i < kLongestTrain; ++i) {
    ASSERT_EQ(got[i].size(), BTH::kSize + kSize + kICRCSize);
    EXPECT_EQ(BTH::decode(got[i])->psn.value(), (psn_ + i) & kMask24);
    EXPECT_TRUE(std::equal(got[i].begin() + BTH::kSize, got[i].end() - kICRCSize,
                           payload.begin() + static_cast<std::ptrdiff_t>(i * kSize)));
  }
  EXPECT_EQ(red_->counters().sent_frames, u64{kLongestTrain});
}

// Long packets go on their way while later ones are still appended.
TEST_F(NICLinkTest, MuchIsNotKeptUntilTheEnd) {
  const std::vector<u8> payload(4096, 7);
  for (u32 i = 0; i < 20; ++i) red_->append(frame_of(Op::kSendOnly, payload, Urgency::kNow));
  EXPECT_GE(arrivals(15).size(), 15u);
  red_->flush();
}

// The device does not know that another NIC has its function now.
TEST_F(NICLinkTest, ALinkIsInItsGroupsAgainAfterARestartOfTheNIC) {
  const GID group = GID::from_ipv4(0xef590000 | (static_cast<u32>(::getpid()) & 0xffff));
  ASSERT_TRUE(blue_->join_multicast(group).has_value());
  stop();
  start();
  const auto has_returned = [](NICLink& link) {
    (void)link.receive(Look::kEverywhere);
    IngressFrame frame;
    (void)link.poll_frame(frame, monotonic_now());
    return link.take_return();
  };
  bool red_is_back = false, blue_is_back = false;
  for (const Time end = monotonic_now() + sec(10);
       !(red_is_back && blue_is_back) && monotonic_now() < end; sleep_for(ms(5))) {
    red_is_back = has_returned(*red_) || red_is_back;
    blue_is_back = has_returned(*blue_) || blue_is_back;
  }
  ASSERT_TRUE(red_is_back && blue_is_back);
  const std::vector<u8> payload(64, 5);
  EgressFrame frame = frame_of(Op::kSendOnly, payload, Urgency::kNow);
  frame.destination = group;
  BTH{.opcode = {Service::kUD, Op::kSendOnly}, .dest_qp = kMulticastQPN}.encode(
      std::span(frame.headers).first<BTH::kSize>());
  DETH{.source_qp = first_qpn_of(red_->function().slot)}.encode(
      std::span(frame.headers).subspan<BTH::kSize>().first<DETH::kSize>());
  frame.headers_size = BTH::kSize + DETH::kSize;
  red_->append(frame);
  red_->flush();
  EXPECT_EQ(arrivals(1).size(), 1u);
  blue_->leave_multicast(group);
}

}  // namespace
}  // namespace verbena::host
