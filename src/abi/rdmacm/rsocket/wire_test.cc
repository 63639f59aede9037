#include "abi/rdmacm/rsocket/wire.h"

#include <gtest/gtest.h>

#include "abi/rdmacm/rsocket/datagram_wire.h"

namespace verbena::rdmacm::rsocket {
namespace {

bool is_encoded(const HeaderBytes& as, std::span<const u8> bytes) {
  return std::ranges::equal(std::span(as.bytes).first(as.size), bytes);
}

TEST(RSocketWireTest, MessagesAreOpAndValue) {
  // Bits 31:29 the operation, 28:0 its value.
  EXPECT_EQ(message_of(Op::kData, 100), 100U);
  EXPECT_EQ(message_of(Op::kCredits, 0x1234), 0x80001234U);
  EXPECT_EQ(message_of(Op::kIomap, 3), 0xc0000003U);
  EXPECT_EQ(message_of(Control::kDisconnect), 0xe0000000U);
  EXPECT_EQ(message_of(Control::kShutdown), 0xe0000002U);
  EXPECT_EQ(op_of(0xe0000002), Op::kControl);
  EXPECT_EQ(value_of(0xe0000002), 2U);
}

TEST(RSocketWireTest, ConnectionData) {
  // version 1, flags 2 (iomaps; little-endian), credits 384, 3 reserved, 5 iomaps; then address,
  // key and length of the target SGL and of the first buffer.
  constexpr std::array<u8, 40> kBytes = {
      0x01, 0x02, 0x01, 0x80, 0,    0,    0,    0x05,                          //
      0x00, 0x00, 0x7f, 0x01, 0x02, 0x03, 0x04, 0x05, 0x11, 0x22, 0x33, 0x44,  //
      0x00, 0x00, 0x00, 0x02,                                                  //
      0x00, 0x00, 0x7f, 0x09, 0x08, 0x07, 0x06, 0x05, 0x55, 0x66, 0x77, 0x88,  //
      0x00, 0x01, 0x00, 0x00};
  const auto data = ConnectionData::decode(kBytes);
  ASSERT_TRUE(data.has_value());
  EXPECT_FALSE(data->big_endian);
  EXPECT_TRUE(data->has_iomaps);
  EXPECT_EQ(data->credits, 384);
  EXPECT_EQ(data->iomap_count, 5U);
  EXPECT_EQ(data->targets.address, 0x7f0102030405U);
  EXPECT_EQ(data->targets.key, 0x11223344U);
  EXPECT_EQ(data->targets.length, 2U);
  EXPECT_EQ(data->buffer.address, 0x7f0908070605U);
  EXPECT_EQ(data->buffer.key, 0x55667788U);
  EXPECT_EQ(data->buffer.length, 65536U);
  EXPECT_EQ(data->encode(), kBytes);
  for (std::size_t size = 0; size < kBytes.size(); ++size)
    EXPECT_FALSE(ConnectionData::decode(std::span(kBytes).first(size)).has_value());
  auto other = kBytes;
  other[0] = 2;
  EXPECT_FALSE(ConnectionData::decode(other).has_value());
}

TEST(RSocketWireTest, CountsOfIomaps) {
  for (u32 count = 0; count <= 128; ++count) EXPECT_EQ(unscaled(scaled(count)), count);
  EXPECT_EQ(unscaled(scaled(255)), 128U);
  EXPECT_EQ(unscaled(scaled(300)), 256U);
  EXPECT_EQ(unscaled(scaled(127 << 8)), 127U << 8);
}

TEST(RSocketWireTest, DatagramHeaders) {
  constexpr std::array<u8, 8> kIPv4 = {4, 8, 0x1c, 0x06, 10, 0, 0, 5};
  const auto four = DatagramHeader::decode(kIPv4);
  ASSERT_TRUE(four.has_value());
  EXPECT_EQ(four->source.family, AF_INET);
  EXPECT_EQ(four->source.port, 7174);
  EXPECT_EQ(four->source.address, GID::from_ipv4(0x0a000005));
  EXPECT_TRUE(is_encoded(four->encode(), kIPv4));

  std::array<u8, 24> ipv6 = {6, 24, 0x1c, 0x06};
  ipv6[8] = 0xfd;
  ipv6[23] = 9;
  const auto six = DatagramHeader::decode(ipv6);
  ASSERT_TRUE(six.has_value());
  EXPECT_EQ(six->source.family, AF_INET6);
  EXPECT_EQ(six->source.address.to_string(), "fd00::9");
  EXPECT_TRUE(is_encoded(six->encode(), ipv6));

  for (std::size_t size = 0; size < 24; ++size)
    EXPECT_FALSE(DatagramHeader::decode(std::span(ipv6).first(size)).has_value());
  ipv6[1] = 8;
  EXPECT_FALSE(DatagramHeader::decode(ipv6).has_value());
}

TEST(RSocketWireTest, Introductions) {
  constexpr std::array<u8, 16> kData = {0x55, 0x55, 0x55, 0x55, 4,  0, 16, 0,
                                        0,    0x01, 0x02, 0x03, 10, 0, 0,  5};
  const auto data = Introduction::decode(kData);
  ASSERT_TRUE(data.has_value());
  EXPECT_TRUE(data->has_data);
  EXPECT_EQ(data->qpn, QPN{0x010203});
  EXPECT_EQ(data->place.address, GID::from_ipv4(0x0a000005));
  EXPECT_TRUE(is_encoded(data->encode(), kData));
  for (std::size_t size = 0; size < kData.size(); ++size)
    EXPECT_FALSE(Introduction::decode(std::span(kData).first(size)).has_value());
  for (const std::size_t at : {0, 4, 5, 6}) {
    auto other = kData;
    other[at] = 99;
    EXPECT_FALSE(Introduction::decode(other).has_value()) << at;
  }
}

}  // namespace
}  // namespace verbena::rdmacm::rsocket
