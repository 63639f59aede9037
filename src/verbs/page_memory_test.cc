#include "verbs/page_memory.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace verbena::verbs {
namespace {

TEST(PageMemoryTest, IsZeroedAndBeginsAtAHugePage) {
  for (const u64 octets : {u64{1}, u64{4096}, u64{70'000}, (u64{5} << 20) + 1}) {
    const auto memory = PageMemory::make(octets);
    ASSERT_TRUE(memory.has_value());
    EXPECT_EQ(reinterpret_cast<u64>(memory->data()) % PageMemory::kHugeOctets, 0u);
    EXPECT_TRUE(
        std::all_of(memory->data(), memory->data() + octets, [](u8 octet) { return octet == 0; }));
    std::fill_n(memory->data(), octets, u8{7});
  }
}

TEST(PageMemoryTest, MovesAndRefuses) {
  auto memory = PageMemory::make(4096);
  ASSERT_TRUE(memory.has_value());
  u8* const data = memory->data();
  PageMemory other = std::move(*memory);
  EXPECT_EQ(other.data(), data);
  data[4095] = 1;
  EXPECT_FALSE(PageMemory::make(~u64{0}).has_value());
  EXPECT_FALSE(PageMemory::make(u64{1} << 62).has_value());
}

}  // namespace
}  // namespace verbena::verbs
