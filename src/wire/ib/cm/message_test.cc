#include "wire/ib/cm/message.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace verbena::cm {
namespace {

// Every CM MAD of the captures, with its AttributeID as tshark prints it.
struct Captured {
  const char* file;
  std::size_t frame;
  Attribute attribute;
};
constexpr std::array kCaptured = {
    Captured{"rxe-cm-rping.pcap", 1, Attribute::kREQ},
    Captured{"rxe-cm-rping.pcap", 2, Attribute::kREP},
    Captured{"rxe-cm-rping.pcap", 3, Attribute::kRTU},
    Captured{"rxe-cm-rping.pcap", 28, Attribute::kDREQ},
    Captured{"rxe-cm-rping.pcap", 29, Attribute::kDREP},
    Captured{"rxe-cm-ucmatose.pcap", 1, Attribute::kREQ},
    Captured{"rxe-cm-ucmatose.pcap", 2, Attribute::kREP},
    Captured{"rxe-cm-ucmatose.pcap", 3, Attribute::kRTU},
    Captured{"rxe-cm-ucmatose.pcap", 8, Attribute::kDREQ},
    Captured{"rxe-cm-ucmatose.pcap", 9, Attribute::kDREP},
    Captured{"rxe-cm-reject.pcap", 1, Attribute::kREQ},
    Captured{"rxe-cm-reject.pcap", 2, Attribute::kREJ},
    Captured{"rxe-cm-ud.pcap", 1, Attribute::kSIDRREQ},
    Captured{"rxe-cm-ud.pcap", 2, Attribute::kSIDRREP},
    Captured{"rxe-cm-ops.pcap", 1, Attribute::kREQ},
    Captured{"rxe-cm-ops.pcap", 2, Attribute::kREP},
    Captured{"rxe-cm-ops.pcap", 3, Attribute::kRTU},
    Captured{"rxe-cm-ops.pcap", 23, Attribute::kDREQ},
    Captured{"rxe-cm-ops.pcap", 24, Attribute::kDREP},
};

std::vector<u8> captured_mad(const Captured& captured) {
  const std::vector<u8> frame = test::captured_frame(captured.file, captured.frame);
  return {frame.begin() + test::kMADAt, frame.begin() + test::kMADAt + kMADSize};
}

TEST(MessageTest, EveryCapturedMADReencodesToTheSameBytes) {
  for (const Captured& captured : kCaptured) {
    const std::vector<u8> mad = captured_mad(captured);
    const std::optional<Message> message = Message::decode(mad);
    ASSERT_TRUE(message.has_value()) << captured.file << captured.frame;
    EXPECT_EQ(std::visit([](const auto& body) { return body.kAttribute; }, message->body),
              captured.attribute);
    EXPECT_TRUE(std::ranges::equal(message->encode(), mad)) << captured.file << captured.frame;
  }
}

TEST(MessageTest, EveryTruncationIsRefused) {
  for (const Captured& captured : kCaptured) {
    const std::vector<u8> mad = captured_mad(captured);
    for (std::size_t n = 0; n < kMADSize; ++n)
      EXPECT_FALSE(Message::decode(std::span(mad).first(n)).has_value()) << n;
  }
}

template <typename T>
void expect_round_trip() {
  const Message message{
      .transaction_id = 0x123456789abcdef0, .attribute_modifier = 0xfedcba98, .body = T{}};
  EXPECT_EQ(Message::decode(message.encode()), message);
}

TEST(MessageTest, EveryMessageHasItsAttribute) {
  expect_round_trip<REQ>();
  expect_round_trip<MRA>();
  expect_round_trip<REJ>();
  expect_round_trip<REP>();
  expect_round_trip<RTU>();
  expect_round_trip<DREQ>();
  expect_round_trip<DREP>();
  expect_round_trip<SIDRREQ>();
  expect_round_trip<SIDRREP>();
  expect_round_trip<LAP>();
  expect_round_trip<APR>();
}

TEST(MessageTest, OtherMADsAreRefused) {
  const MADBytes good = Message{.body = RTU{}}.encode();
  const auto with = [&good](std::size_t at, u8 value) {
    MADBytes mad = good;
    mad[at] = value;
    return Message::decode(mad).has_value();
  };
  EXPECT_TRUE(with(3, 0x03));
  EXPECT_FALSE(with(0, 0x02));   // BaseVersion
  EXPECT_FALSE(with(1, 0x03));   // SubnAdm
  EXPECT_FALSE(with(2, 0x01));   // ClassVersion
  EXPECT_FALSE(with(3, 0x01));   // Get
  EXPECT_FALSE(with(3, 0x83));   // Send is not answered
  EXPECT_FALSE(with(16, 0x01));  // AttributeID 0x0114
  for (int attribute = 0; attribute < 256; ++attribute)
    EXPECT_EQ(with(17, static_cast<u8>(attribute)), attribute >= 0x10 && attribute <= 0x1a)
        << attribute;
}

}  // namespace
}  // namespace verbena::cm
