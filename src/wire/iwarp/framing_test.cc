#include "wire/iwarp/framing.h"

#include <gtest/gtest.h>

namespace verbena::iwarp {
namespace {

TEST(IWARPFraming, AnFPDUIsPaddedToWholeWords) {
  for (u32 ulpdu = 1; ulpdu < 100; ++ulpdu) {
    EXPECT_EQ(fpdu_bytes(ulpdu) % 4, 0u);
    EXPECT_GE(fpdu_bytes(ulpdu), ulpdu + kMPAOverhead);
    EXPECT_LT(fpdu_bytes(ulpdu), ulpdu + kMPAOverhead + 4);
  }
}

TEST(IWARPFraming, TheLongestFPDUFitsASegment) {
  for (u32 mss = 32; mss < 9000; ++mss) {
    EXPECT_LE(fpdu_bytes(longest_ulpdu(mss)), mss);
    EXPECT_GT(fpdu_bytes(longest_ulpdu(mss) + 4), mss);
  }
}

// Each FPDU by itself.
TEST(IWARPFraming, AWriteIsTheSumOfItsFPDUs) {
  for (const u32 mss : {64u, 1448u, 1460u, 8948u})
    for (const u64 message : {u64{0}, u64{1}, u64{41}, u64{1425}, u64{1426}, u64{100'000}}) {
      u64 bytes = 0, left = message;
      do {
        const u64 payload = std::min<u64>(left, longest_ulpdu(mss) - kTaggedHeader);
        bytes += fpdu_bytes(static_cast<u32>(kTaggedHeader + payload));
        left -= payload;
      } while (left != 0);
      EXPECT_EQ(write_bytes(message, mss), bytes) << mss << " " << message;
    }
}

}  // namespace
}  // namespace verbena::iwarp
