#include "management/rmpp_transfers.h"

#include <functional>
#include <numeric>

#include <gtest/gtest.h>

namespace verbena::management {
namespace {

constexpr PortPlace kSender{1, 1}, kReceiver{2, 1};
constexpr u16 kSenderLID = 11, kReceiverLID = 12;
constexpr u8 kTableResponse = 0x92;  // SubnAdmGetTableResp

// Two ends, and a wire that counts and may lose.
class RMPPTransfersTest : public testing::Test {
 protected:
  static Datagram message_of(std::size_t data_bytes) {
    Datagram message;
    message.dlid = kReceiverLID;
    message.source_qp = message.destination_qp = 1;
    message.mad.resize(56 + data_bytes);
    message.mad[0] = 1;
    message.mad[1] = static_cast<u8>(MgmtClass::kSubnAdm);
    message.mad[2] = 2;
    message.mad[3] = kTableResponse;
    message.mad[15] = 77;  // of the transaction ID
    RMPPHeader{}.encode(message.mad);
    std::iota(message.mad.begin() + 56, message.mad.end(), u8{1});
    message.message_bytes = static_cast<u32>(message.mad.size());
    message.mad.resize(std::max(message.mad.size(), kMADSize));
    return message;
  }
  // Carries all that both ends send, until neither does.
  void carry() {
    for (bool any = true; any;) {
      any = false;
      while (std::optional<Delivery> sent = sender_.poll_to_send()) {
        any = true;
        EXPECT_EQ(sent->datagram.mad.size(), kMADSize);
        seen_.push_back(RMPPHeader::decode(sent->datagram.mad));
        sent->datagram.slid = kSenderLID;
        if (!loses_(seen_.back()))
          if (auto whole = receiver_.on_mad(kReceiver, sent->datagram, now_))
            received_.push_back(std::move(*whole));
      }
      while (std::optional<Delivery> sent = receiver_.poll_to_send()) {
        any = true;
        answers_.push_back(RMPPHeader::decode(sent->datagram.mad));
        EXPECT_EQ(sent->datagram.dlid, kSenderLID);
        EXPECT_EQ(sent->datagram.mad[3], kTableResponse ^ 0x80);
        sent->datagram.slid = kReceiverLID;
        if (!loses_(answers_.back())) (void)sender_.on_mad(kSender, sent->datagram, now_);
      }
    }
  }
  void expect_received(const Datagram& message) {
    ASSERT_EQ(received_.size(), 1u);
    ASSERT_EQ(received_[0].message_bytes, message.message_bytes);
    EXPECT_TRUE(std::equal(message.mad.begin() + 56, message.mad.begin() + message.message_bytes,
                           received_[0].mad.begin() + 56));
  }

  Time now_ = Time() + sec(1);
  RMPPTransfers sender_, receiver_;
  std::vector<RMPPHeader> seen_, answers_;
  std::vector<Datagram> received_;
  std::function<bool(const RMPPHeader&)> loses_ = [](const RMPPHeader&) { return false; };
};

// 13.6.2.1: the first segment's PayloadLength counts the data and 20 bytes of class header for each
// segment, the last one's its own.
TEST_F(RMPPTransfersTest, SegmentsOfATable) {
  const Datagram message = message_of(3 * 200 + 36);
  sender_.send(kSender, message, now_);
  carry();
  expect_received(message);
  ASSERT_EQ(seen_.size(), 4u);
  EXPECT_EQ(seen_[0], (RMPPHeader{.flags = 3, .segment = 1, .length = 4 * 20 + 636}));
  EXPECT_EQ(seen_[1], (RMPPHeader{.flags = 1, .segment = 2}));
  EXPECT_EQ(seen_[2], (RMPPHeader{.flags = 1, .segment = 3}));
  EXPECT_EQ(seen_[3], (RMPPHeader{.flags = 5, .segment = 4, .length = 20 + 36}));
  ASSERT_EQ(answers_.size(), 2u);  // the first one opens the window
  EXPECT_EQ(answers_[0],
            (RMPPHeader{.type = RMPPType::kACK, .segment = 1, .length = RMPPTransfers::kWindow}));
  EXPECT_EQ(answers_[1], (RMPPHeader{.type = RMPPType::kACK, .segment = 4, .length = 4}));
}

TEST_F(RMPPTransfersTest, EverySizeArrivesWhole) {
  for (const std::size_t bytes : {0u, 1u, 199u, 200u, 201u, 400u, 64u * 200, 70u * 1000}) {
    received_.clear();
    const Datagram message = message_of(bytes);
    sender_.send(kSender, message, now_);
    carry();
    expect_received(message);
    now_ = now_ + RMPPTransfers::kIdleTimeout;
    receiver_.on_timer(now_);
    EXPECT_EQ(sender_.transfers() + receiver_.transfers(), 0u);
  }
}

TEST_F(RMPPTransfersTest, LostSegmentsAndAnswersAreSentAgain) {
  u32 count = 0;
  loses_ = [&count](const RMPPHeader&) { return ++count % 5 == 0; };
  const Datagram message = message_of(300 * 200);
  sender_.send(kSender, message, now_);
  carry();
  for (u32 i = 0; i < 2000 && sender_.transfers() != 0; ++i) {
    now_ = now_ + RMPPTransfers::kAckTimeout;
    sender_.on_timer(now_);
    carry();
  }
  EXPECT_EQ(sender_.transfers(), 0u);
  expect_received(message);
}

TEST_F(RMPPTransfersTest, ASilentReceiverIsGivenUp) {
  loses_ = [](const RMPPHeader&) { return true; };
  sender_.send(kSender, message_of(1000), now_);
  carry();
  while (sender_.next_timer() != Time::never()) {
    now_ = sender_.next_timer();
    sender_.on_timer(now_);
    carry();
  }
  EXPECT_EQ(seen_.size(), 1 + RMPPTransfers::kMostRetries);
  EXPECT_EQ(sender_.transfers(), 0u);
}

// Nobody sends these: an ABORT says so, and the transfer is over.
TEST_F(RMPPTransfersTest, NonsenseIsAborted) {
  const auto answer_to = [&](RMPPTransfers& end, PortPlace at, RMPPHeader header) {
    Datagram mad = message_of(200);
    mad.slid = at == kSender ? kReceiverLID : kSenderLID;
    header.encode(mad.mad);
    (void)end.on_mad(at, mad, now_);
    const std::optional<Delivery> sent = end.poll_to_send();
    return sent ? std::optional(RMPPHeader::decode(sent->datagram.mad)) : std::nullopt;
  };
  const auto status_of = [](const std::optional<RMPPHeader>& answer) {
    EXPECT_TRUE(answer && answer->type == RMPPType::kAbort);
    return answer ? answer->status : RMPPStatus::kNormal;
  };
  EXPECT_EQ(status_of(answer_to(receiver_, kReceiver, {.version = 2, .flags = 3, .segment = 1})),
            RMPPStatus::kUnsupportedVersion);
  for (const u32 length : {0u, 19u, 221u, ~0u})
    EXPECT_EQ(
        status_of(answer_to(receiver_, kReceiver, {.flags = 7, .segment = 1, .length = length})),
        RMPPStatus::kInconsistentPayloadLength)
        << length;
  EXPECT_FALSE(answer_to(receiver_, kReceiver, {.flags = 1, .segment = 2}).has_value());
  EXPECT_EQ(receiver_.transfers(), 0u);

  for (const RMPPHeader& ack : {RMPPHeader{.type = RMPPType::kACK, .segment = 6, .length = 64},
                                RMPPHeader{.type = RMPPType::kACK, .segment = 1, .length = 0}}) {
    sender_.send(kSender, message_of(1000), now_);
    while (sender_.poll_to_send()) {
    }
    EXPECT_EQ(
        status_of(answer_to(sender_, kSender, ack)),
        ack.segment == 6 ? RMPPStatus::kInconsistentSegmentNumber : RMPPStatus::kWindowTooSmall);
    EXPECT_EQ(sender_.transfers(), 0u);
  }
}

TEST_F(RMPPTransfersTest, ManyTransfersAreBounded) {
  for (u32 i = 0; i < 2 * RMPPTransfers::kMostTransfers; ++i) {
    Datagram mad = message_of(200);
    mad.slid = static_cast<u16>(i + 1);
    RMPPHeader{.flags = 3, .segment = 1}.encode(mad.mad);
    (void)receiver_.on_mad(kReceiver, mad, now_);
    const std::optional<Delivery> answer = receiver_.poll_to_send();
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(RMPPHeader::decode(answer->datagram.mad).type,
              i < RMPPTransfers::kMostTransfers ? RMPPType::kACK : RMPPType::kStop);
  }
  EXPECT_EQ(receiver_.transfers(), RMPPTransfers::kMostTransfers);
}

}  // namespace
}  // namespace verbena::management
