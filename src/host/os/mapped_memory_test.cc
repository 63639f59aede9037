#include "host/os/mapped_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <vector>

namespace verbena::host {
namespace {

TEST(MappedMemoryTest, HeapAndStackAreMapped) {
  const std::vector<char> heap(1 << 20);
  char stack[3];
  EXPECT_TRUE(is_mapped(heap.data(), heap.size()));
  EXPECT_TRUE(is_mapped(stack, sizeof stack));
}

TEST(MappedMemoryTest, AHoleIsFound) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* at = ::mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(at, MAP_FAILED);
  char* bytes = static_cast<char*>(at);
  ASSERT_EQ(::munmap(bytes + page, page), 0);
  EXPECT_TRUE(is_mapped(bytes, page));
  EXPECT_FALSE(is_mapped(bytes, page + 1));
  EXPECT_FALSE(is_mapped(bytes + page, 1));
  EXPECT_FALSE(is_mapped(bytes, 3 * page));
  EXPECT_TRUE(is_mapped(bytes + 2 * page, page));
  ::munmap(bytes, page);
  ::munmap(bytes + 2 * page, page);
}

TEST(MappedMemoryTest, RightsAreThoseOfEveryPage) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* at = ::mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(at, MAP_FAILED);
  char* bytes = static_cast<char*>(at);
  EXPECT_TRUE(is_mapped(bytes, 4 * page, PageRight::kWrite));
  ASSERT_EQ(::mprotect(bytes + page, page, PROT_READ), 0);
  ASSERT_EQ(::mprotect(bytes + 3 * page, page, PROT_NONE), 0);
  EXPECT_TRUE(is_mapped(bytes, page, PageRight::kWrite));
  EXPECT_FALSE(is_mapped(bytes, page + 1, PageRight::kWrite));
  EXPECT_FALSE(is_mapped(bytes, 3 * page, PageRight::kWrite)) << "the page in the middle";
  EXPECT_TRUE(is_mapped(bytes, 3 * page, PageRight::kRead));
  EXPECT_TRUE(is_mapped(bytes + 2 * page, page, PageRight::kWrite));
  EXPECT_FALSE(is_mapped(bytes + 2 * page, page + 1, PageRight::kRead));
  EXPECT_TRUE(is_mapped(bytes + 3 * page, page)) << "with no right at all";
  EXPECT_TRUE(is_mapped(bytes + page, 0, PageRight::kWrite));
  ::munmap(bytes, 4 * page);
  EXPECT_FALSE(is_mapped(bytes, page, PageRight::kRead));
}

TEST(MappedMemoryTest, ConstantsCannotBeWritten) {
  static constexpr char kConstants[3 * 4096] = {1};
  EXPECT_TRUE(is_mapped(kConstants, sizeof kConstants, PageRight::kRead));
  EXPECT_FALSE(is_mapped(kConstants, sizeof kConstants, PageRight::kWrite));
}

TEST(MappedMemoryTest, EndsOfTheAddressSpace) {
  EXPECT_FALSE(is_mapped(nullptr, 1));
  EXPECT_FALSE(is_mapped(reinterpret_cast<void*>(UINTPTR_MAX - 10), 100));
  EXPECT_TRUE(is_mapped(nullptr, 0));
}

}  // namespace
}  // namespace verbena::host
