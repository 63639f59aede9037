#include "wire/ib/aeth.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace verbena {
namespace {

using test::kIPv4ExtendedAt;

TEST(AETHTest, ACKFromCapture) {
  // tests/captures/rxe-rc-write.pcap, frame 20, as tshark prints it: Syndrome 31, Ack, Credit
  // Count 31, Message Sequence Number 8
  test::expect_golden<AETH>({"rxe-rc-write.pcap", 20, kIPv4ExtendedAt}, {0x1f, 0x00, 0x00, 0x08},
                            {.kind = AETHKind::kACK, .value = kNoCredits, .msn = MSN{8}});
}

TEST(AETHTest, RNRNAKFromCapture) {
  // tests/captures/rxe-rc-rnr.pcap, frame 2, as tshark prints it: Syndrome 50, RNR Nak, Timer
  // 5.12 ms (18), Message Sequence Number 0
  test::expect_golden<AETH>({"rxe-rc-rnr.pcap", 2, kIPv4ExtendedAt}, {0x32, 0x00, 0x00, 0x00},
                            {.kind = AETHKind::kRNRNAK, .value = 18, .msn = MSN{0}});
}

TEST(AETHTest, NAKFromCapture) {
  // tests/captures/rxe-rc-bad-rkey-write.pcap, frame 2, as tshark prints it: Syndrome 98, Nak,
  // Error Code: Remote Access Error (2), Message Sequence Number 0
  test::expect_golden<AETH>({"rxe-rc-bad-rkey-write.pcap", 2, kIPv4ExtendedAt},
                            {0x62, 0x00, 0x00, 0x00},
                            {.kind = AETHKind::kNAK,
                             .value = static_cast<u8>(NAKCode::kRemoteAccessError),
                             .msn = MSN{0}});
}

TEST(AETHTest, EverySyndromeBothWays) {
  for (u8 syndrome = 0; syndrome < 0x80; ++syndrome)
    test::expect_both_ways<AETH>({syndrome, 0x12, 0x34, 0x56},
                                 {.kind = static_cast<AETHKind>(syndrome >> 5),
                                  .value = static_cast<u8>(syndrome & 31),
                                  .msn = MSN{0x123456}});
}

TEST(AETHTest, TheReservedBitIsRefused) {
  for (u8 low = 0; low < 0x80; ++low) {
    const std::array<u8, AETH::kSize> bytes = {static_cast<u8>(0x80 | low), 0, 0, 0};
    EXPECT_FALSE(AETH::decode(bytes).has_value()) << int{low};
  }
}

TEST(AETHDeathTest, AValueOfMoreThan5BitsIsACrash) {
  std::array<u8, AETH::kSize> bytes{};
  EXPECT_DEATH(AETH{.value = 32}.encode(bytes), "value");
}

}  // namespace
}  // namespace verbena
