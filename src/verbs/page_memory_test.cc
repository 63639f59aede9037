#include "verbs/page_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

namespace verbena::verbs {
namespace {

using Sharing = PageMemory::Sharing;

TEST(PageMemoryTest, IsZeroedAndBeginsAtAHugePage) {
  for (const Sharing sharing : {Sharing::kPrivate, Sharing::kCommon})
    for (const u64 bytes : {u64{1}, u64{4096}, u64{70'000}, (u64{5} << 20) + 1}) {
      const auto memory = PageMemory::make(bytes, sharing);
      ASSERT_TRUE(memory.has_value());
      EXPECT_EQ(reinterpret_cast<u64>(memory->data()) % PageMemory::kHugeBytes, 0u);
      EXPECT_TRUE(
          std::all_of(memory->data(), memory->data() + bytes, [](u8 byte) { return byte == 0; }));
      std::fill_n(memory->data(), bytes, u8{7});
    }
}

TEST(PageMemoryTest, MovesAndRefuses) {
  for (const Sharing sharing : {Sharing::kPrivate, Sharing::kCommon}) {
    auto memory = PageMemory::make(4096, sharing);
    ASSERT_TRUE(memory.has_value());
    u8* const data = memory->data();
    PageMemory other = std::move(*memory);
    EXPECT_EQ(other.data(), data);
    data[4095] = 1;
    EXPECT_FALSE(PageMemory::make(~u64{0}, sharing).has_value());
    EXPECT_FALSE(PageMemory::make(u64{1} << 62, sharing).has_value());
  }
}

// Returns the number of open descriptors.
std::ptrdiff_t descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

TEST(PageMemoryTest, CommonMemoryGivesItsDescriptorBack) {
  const auto before = descriptors();
  {
    const auto memory = PageMemory::make(4096, Sharing::kCommon);
    EXPECT_EQ(descriptors(), before + 1);
  }
  EXPECT_EQ(descriptors(), before);
}

}  // namespace
}  // namespace verbena::verbs
