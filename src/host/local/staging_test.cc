#include "host/local/staging.h"

#include <gtest/gtest.h>

#include "host/os/page_for_test.h"

namespace verbena::host {
namespace {

using test::kPage;

constexpr u64 kLong = 1 << 20;

TEST(StagingTest, SuitsLongCopiesToALittleFurtherInThePage) {
  EXPECT_FALSE(Staging::suits(7 * kPage, 3 * kPage, kLong));
  EXPECT_TRUE(Staging::suits(7 * kPage + 1, 3 * kPage, kLong));
  EXPECT_TRUE(Staging::suits(7 * kPage + 115, 3 * kPage + 100, kLong));
  EXPECT_FALSE(Staging::suits(7 * kPage + 116, 3 * kPage + 100, kLong));
  EXPECT_FALSE(Staging::suits(7 * kPage - 1, 3 * kPage, kLong));
  EXPECT_TRUE(Staging::suits(3 * kPage + 1, 7 * kPage, kLong)) << "whichever comes first";
  EXPECT_FALSE(Staging::suits(7 * kPage + 1, 3 * kPage, 1000)) << "too short to matter";
}

TEST(StagingTest, IsFarInThePageFromWhatItIsBeside) {
  Staging staging;
  for (const u64 address : {u64{0}, u64{1}, u64{2047}, u64{2048}, u64{0x7f00'1234'5fff}}) {
    const MutableBytes room = staging.beside(address, kLong);
    EXPECT_EQ(room.size(), Staging::kBytes);
    EXPECT_EQ((reinterpret_cast<u64>(room.data()) - address) % kPage, kPage / 2);
    std::fill(room.begin(), room.end(), u8{1});  // all of it is there
  }
  EXPECT_EQ(staging.beside(5, 100).size(), 100u);
}

}  // namespace
}  // namespace verbena::host
