#include "wire/roce/cnp.h"

#include <gtest/gtest.h>

namespace verbena {
namespace {

// The example of NVIDIA's article "RoCEv2 CNP Packet Format Example": OpCode 0x81, BECN 1, DestQP
// 0xd2, everything else 0.
constexpr std::array<u8, kCNPSize> kExample = {0x81, 0x00, 0xff, 0xff, 0x40, 0x00, 0x00, 0xd2};

TEST(CNPTest, EncodesAsACardDoes) { EXPECT_EQ(encode_cnp(QPN{0xd2}, kDefaultPKey), kExample); }

TEST(CNPTest, IsRecognised) {
  const std::optional<PacketView> packet = PacketView::decode(kExample);
  ASSERT_TRUE(packet.has_value());
  EXPECT_TRUE(is_cnp(*packet));
  EXPECT_EQ(packet->headers, make_cnp(QPN{0xd2}, kDefaultPKey));
}

TEST(CNPTest, ReservedBytesAreIgnored) {
  std::array<u8, kCNPSize> bytes = kExample;
  bytes.back() = 0xff;
  EXPECT_TRUE(is_cnp(*PacketView::decode(bytes)));
}

TEST(CNPTest, OtherLengthsAndOpcodesAreNone) {
  std::array<u8, kCNPSize + 1> bytes{};
  std::ranges::copy(kExample, bytes.begin());
  for (std::size_t n = BTH::kSize; n <= bytes.size(); ++n)
    EXPECT_EQ(is_cnp(*PacketView::decode(std::span(bytes).first(n))), n == kCNPSize) << n;
  bytes[0] = Opcode{Service::kRC, Op::kSendOnly}.to_byte();
  EXPECT_FALSE(is_cnp(*PacketView::decode(std::span(bytes).first(kCNPSize))));
}

}  // namespace
}  // namespace verbena
