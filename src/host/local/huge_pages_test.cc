#include "host/local/huge_pages.h"

#include <gtest/gtest.h>

namespace verbena::host {
namespace {

HugePages of(u64 begin, u64 length) {
  return huge_pages_of({reinterpret_cast<const u8*>(begin), length});
}

TEST(HugePagesTest, AreThoseThatTheMemoryHasHalfOf) {
  constexpr u64 kStart = 64 * kHugePage, kHalf = kHugePage / 2;
  EXPECT_EQ(of(kStart, 3 * kHugePage).begin, kStart);
  EXPECT_EQ(of(kStart, 3 * kHugePage).count, 3u);
  EXPECT_EQ(of(kStart + 16, 2 * kHugePage - 16).begin, kStart);
  EXPECT_EQ(of(kStart + 16, 2 * kHugePage - 16).count, 2u);
  EXPECT_EQ(of(kStart + kHalf - 1, 2 * kHugePage).begin, kStart);
  EXPECT_EQ(of(kStart + kHalf - 1, 2 * kHugePage + 1).count, 3u);
  EXPECT_EQ(of(kStart + kHalf + 1, 2 * kHugePage).begin, kStart + kHugePage);
  EXPECT_EQ(of(kStart + kHalf + 1, 2 * kHugePage - 2).count, 1u);
}

TEST(HugePagesTest, AreNoneForLittleMemory) {
  EXPECT_EQ(of(64 * kHugePage, 0).count, 0u);
  EXPECT_EQ(of(64 * kHugePage, 4096).count, 0u);
  EXPECT_EQ(of(64 * kHugePage - 4096, kHugePage / 2).count, 0u);
}

TEST(HugePagesTest, AreLimited) { EXPECT_EQ(of(0, 1000 * kHugePage).count, 128u); }

TEST(HugePagesTest, KeepWhatIsInMemory) {
  std::vector<u8> memory(3 * kHugePage);
  for (u64 i = 0; i < memory.size(); i += 512) memory[i] = static_cast<u8>(i / 512);
  const std::vector<u8> before = memory;
  give_huge_pages(memory);
  EXPECT_EQ(memory, before);
}

}  // namespace
}  // namespace verbena::host
