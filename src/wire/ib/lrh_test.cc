#include "wire/ib/lrh.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace verbena {
namespace {

// The sample packet of IBTA Vol 1, 7.8.1 (ICRC, local packet): VL 7, SL 1, LNH 2, DLID 0x375c,
// PktLen 14, SLID 0x17d2; BTH and all behind it; ICRC 0x9625b75a, in the order of its bytes.
constexpr std::array<u8, LRH::kSize> kSample = {0x70, 0x12, 0x37, 0x5c, 0x00, 0x0e, 0x17, 0xd2};
constexpr LRH kFields{.virtual_lane = 7,
                      .service_level = 1,
                      .next_header = LinkNextHeader::kBTH,
                      .dlid = 0x375c,
                      .packet_words = 14,
                      .slid = 0x17d2};
constexpr std::array<u8, 44> kTransport = {
    0x0a, 0x20, 0x24, 0x87, 0x00, 0x87, 0xb1, 0xb3, 0x00, 0x0d, 0xec, 0x2a, 0x01, 0x71, 0x0a,
    0x1c, 0x01, 0x5d, 0x40, 0x02, 0x38, 0xf2, 0x7a, 0x05, 0x00, 0x00, 0x00, 0x0e, 0xbb, 0x88,
    0x4d, 0x85, 0xfd, 0x5c, 0xfb, 0xa4, 0x72, 0x8b, 0xc0, 0x69, 0x0e, 0xd4, 0x00, 0x00};

TEST(LRHTest, TheSpecificationsSample) { test::expect_both_ways<LRH>(kSample, kFields); }

TEST(LRHTest, TheSpecificationsICRC) {
  EXPECT_EQ(icrc_of_local(kFields, kTransport), 0x5ab72596u);  // stored little-endian: 96 25 b7 5a
  LRH other_lane = kFields;
  other_lane.virtual_lane = 2;
  std::array<u8, 44> marked = kTransport;
  marked[4] = 0xc0;  // FECN, BECN
  EXPECT_EQ(icrc_of_local(other_lane, marked), 0x5ab72596u);
  other_lane.service_level = 0;
  EXPECT_NE(icrc_of_local(other_lane, marked), 0x5ab72596u);
}

TEST(LRHTest, EveryFieldFull) {
  test::expect_both_ways<LRH>({0xf0, 0xf3, 0xff, 0xff, 0x07, 0xff, 0xbf, 0xff},
                              {.virtual_lane = 15,
                               .service_level = 15,
                               .next_header = LinkNextHeader::kGRH,
                               .dlid = 0xffff,
                               .packet_words = 0x7ff,
                               .slid = 0xbfff});
}

TEST(LRHTest, OtherVersionsAreRefusedAndReservedBitsIgnored) {
  std::array<u8, LRH::kSize> bytes = kSample;
  bytes[1] |= 0x0c;
  bytes[4] |= 0xf8;
  EXPECT_EQ(LRH::decode(bytes), kFields);
  for (int version = 0; version < 16; ++version) {
    bytes[0] = static_cast<u8>(0x70 | version);
    EXPECT_EQ(LRH::decode(bytes).has_value(), version == 0) << version;
  }
}

}  // namespace
}  // namespace verbena
