#include "base/bytes.h"

#include <gtest/gtest.h>

#include <array>

namespace verbena {
namespace {

constexpr std::array<u8, 16> kBytes = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
                                       0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32, 0x10};

TEST(BytesTest, ReadsNetworkOrder) {
  const Reader<16> r(kBytes);
  EXPECT_EQ(r.get8<15>(), 0x10);
  EXPECT_EQ(r.get16<1>(), 0x2345);
  EXPECT_EQ(r.get24<13>(), 0x543210u);
  EXPECT_EQ(r.get32<4>(), 0x89abcdefu);
  EXPECT_EQ(r.get64<8>(), 0xfedcba9876543210u);
}

TEST(BytesTest, WritesNetworkOrder) {
  std::array<u8, 16> out{};
  Writer<16> w(out);
  w.put8<0>(0x01);
  w.put24<1>(0x234567);
  w.put16<4>(0x89ab);
  w.put16<6>(0xcdef);
  w.put32<8>(0xfedcba98);
  w.put32<12>(0x76543210);
  EXPECT_EQ(out, kBytes);
  Writer<16>(out).put64<8>(0x0123456789abcdef);
  EXPECT_EQ(load_be64(out.data() + 8), 0x0123456789abcdefu);
}

TEST(BytesTest, A24BitWriteLeavesItsNeighbours) {
  std::array<u8, 5> out = {0xaa, 0, 0, 0, 0xbb};
  store_be24(out.data() + 1, 0xff010203);
  EXPECT_EQ(out, (std::array<u8, 5>{0xaa, 1, 2, 3, 0xbb}));
}

}  // namespace
}  // namespace verbena
