// Memory that others can map: found, or made so with its contents, while threads go on writing.
#include "host/local/common_memory.h"

#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <thread>

#include "host/local/address_space.h"
#include "host/local/replaced_memory.h"
#include "host/os/mapping.h"
#include "host/os/memory_faults.h"
#include "host/os/page_for_test.h"

namespace verbena::host {
namespace {

using test::address_of;
using test::kPage;

bool is_shared(const u8* at) {
  return AddressSpace(AddressSpace::Look::kThoroughly).at(address_of(at))->is_shared;
}

class CommonMemoryTest : public testing::Test {
 protected:
  static constexpr std::size_t kSize = 16 * kPage;

  CommonMemoryTest() {
    survive_memory_faults();
    memory_ = static_cast<u8*>(
        ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::iota(memory_, memory_ + kSize, u8{7});
  }
  ~CommonMemoryTest() override { ::munmap(memory_, kSize); }

  std::span<u8> part(std::size_t offset, std::size_t length) const {
    return {memory_ + offset, length};
  }
  // Returns the byte in the file at the place of the memory.
  static u8 in_file(const CommonMemory& common, const u8* at) {
    u8 byte = 0;
    const u64 offset = common.span.offset + (address_of(at) - common.span.address);
    EXPECT_EQ(::pread(common.file->fd(), &byte, 1, static_cast<off_t>(offset)), 1);
    return byte;
  }

  u8* memory_ = nullptr;
};

TEST_F(CommonMemoryTest, PrivateMemoryIsNoneUnlessAskedFor) {
  EXPECT_FALSE(common_memory_of(part(0, kSize), Sharing::kAsFound));
  EXPECT_FALSE(is_shared(memory_));
}

TEST_F(CommonMemoryTest, ReplacedMemoryKeepsItsContentsAndTheEndsTheirPages) {
  const std::optional<CommonMemory> common =
      common_memory_of(part(100, 4 * kPage), Sharing::kReplace);
  ASSERT_TRUE(common);
  EXPECT_EQ(common->span.address, address_of(memory_ + kPage));
  EXPECT_EQ(common->span.length, 3 * kPage);
  for (std::size_t i = 0; i < kSize; ++i) ASSERT_EQ(memory_[i], static_cast<u8>(i + 7)) << i;
  EXPECT_FALSE(is_shared(memory_));
  EXPECT_TRUE(is_shared(memory_ + kPage));
  EXPECT_TRUE(is_shared(memory_ + 3 * kPage));
  EXPECT_FALSE(is_shared(memory_ + 4 * kPage));
  memory_[2 * kPage + 5] = 0xa5;
  EXPECT_EQ(in_file(*common, memory_ + 2 * kPage + 5), 0xa5);
}

TEST_F(CommonMemoryTest, LessThanAPageIsLeftAlone) {
  EXPECT_FALSE(common_memory_of(part(100, kPage), Sharing::kReplace));
  EXPECT_FALSE(common_memory_of(part(100, 0), Sharing::kReplace));
  EXPECT_FALSE(is_shared(memory_));
}

TEST_F(CommonMemoryTest, RegionsThatOverlapHaveOneFile) {
  const auto first = common_memory_of(part(0, 8 * kPage), Sharing::kReplace);
  const auto second = common_memory_of(part(4 * kPage, 8 * kPage), Sharing::kReplace);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(second->file, first->file);
  EXPECT_EQ(second->span.offset, 4 * kPage);
  EXPECT_EQ(second->span.length, 4 * kPage) << "the rest is copied to";
}

TEST_F(CommonMemoryTest, IsPrivateAgainAndUnchangedWhenTheLastRegionIsGone) {
  std::optional<CommonMemory> first = common_memory_of(part(0, kSize), Sharing::kReplace);
  std::optional<CommonMemory> second = common_memory_of(part(0, kPage), Sharing::kReplace);
  memory_[9] = 0x77;
  first.reset();
  EXPECT_TRUE(is_shared(memory_));
  second.reset();
  EXPECT_FALSE(is_shared(memory_));
  EXPECT_FALSE(is_shared(memory_ + kSize - 1));
  EXPECT_EQ(memory_[9], 0x77);
  EXPECT_EQ(memory_[kSize - 1], static_cast<u8>(kSize - 1 + 7));
  const auto again = common_memory_of(part(0, kSize), Sharing::kReplace);
  ASSERT_TRUE(again);
  EXPECT_EQ(in_file(*again, memory_ + 9), 0x77);
}

TEST_F(CommonMemoryTest, TheProgramMayUnmapItOrMapSomethingElseThere) {
  std::optional<CommonMemory> common = common_memory_of(part(0, kSize), Sharing::kReplace);
  ASSERT_EQ(::munmap(memory_ + kPage, kPage), 0);
  void* const other =
      ::mmap(memory_ + 3 * kPage, kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  ASSERT_EQ(other, memory_ + 3 * kPage);
  common.reset();
  EXPECT_EQ(memory_[0], 7);
  EXPECT_EQ(memory_[2 * kPage], static_cast<u8>(2 * kPage + 7));
  EXPECT_EQ(memory_[3 * kPage], 0);
  const AddressSpace space(AddressSpace::Look::kThoroughly);
  EXPECT_FALSE(space.at(address_of(memory_ + 3 * kPage))->is_writable);
}

TEST_F(CommonMemoryTest, IsCommonWithChildrenOfForkWhileItIsRegistered) {
  std::optional<CommonMemory> common = common_memory_of(part(0, kSize), Sharing::kReplace);
  const auto write_in_child = [this](u8 value) {
    const pid_t child = ::fork();
    if (child == 0) {
      memory_[3] = value;
      ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
  };
  write_in_child(0x33);
  EXPECT_EQ(memory_[3], 0x33);
  common.reset();
  write_in_child(0x44);
  EXPECT_EQ(memory_[3], 0x33);
}

TEST_F(CommonMemoryTest, MemoryThatIsNotToBeWrittenIsLeftAlone) {
  ASSERT_EQ(::mprotect(memory_, kSize, PROT_READ), 0);
  EXPECT_FALSE(common_memory_of(part(0, kSize), Sharing::kReplace));
  EXPECT_FALSE(is_shared(memory_));
}

TEST_F(CommonMemoryTest, AStackIsLeftAloneWhileItIsInUse) {
  const auto* const frame = static_cast<const u8*>(__builtin_frame_address(0));
  const u8* const begin = frame - 8 * kPage;  // with the frames of what is called
  EXPECT_FALSE(common_memory_of({begin, 12 * kPage}, Sharing::kReplace));
}

TEST_F(CommonMemoryTest, WhatTheProgramSharesIsFound) {
  Expected<Mapping> shared = Mapping::create(4 * kPage);
  ASSERT_TRUE(shared);
  const auto common = common_memory_of({shared->data() + kPage + 100, 200}, Sharing::kAsFound);
  if (!common) GTEST_SKIP() << "before Linux 6.11";
  EXPECT_EQ(common->span.address, address_of(shared->data() + kPage)) << "its page";
  EXPECT_EQ(common->span.length, kPage);
  EXPECT_EQ(common->span.offset, kPage);
  shared->data()[kPage + 100] = 0x42;
  EXPECT_EQ(in_file(*common, shared->data() + kPage + 100), 0x42);
}

TEST_F(CommonMemoryTest, AFileOnADiskIsLeftAlone) {
  std::array<char, 32> path{"common_memory_test.XXXXXX"};
  const Descriptor file(::mkstemp(path.data()));
  ASSERT_TRUE(file.is_open());
  ::unlink(path.data());
  ASSERT_EQ(::ftruncate(file.get(), kPage), 0);
  struct statfs system {};
  ASSERT_EQ(::fstatfs(file.get(), &system), 0);
  if (system.f_type == TMPFS_MAGIC) GTEST_SKIP() << "the disk is memory";
  Expected<Mapping> mapping = Mapping::of_file(file.get(), 0, kPage, MapAccess::kReadWrite);
  ASSERT_TRUE(mapping);
  EXPECT_FALSE(common_memory_of({mapping->data(), kPage}, Sharing::kReplace));
}

// Each counts in a page of its own, and finds its own count there.
TEST_F(CommonMemoryTest, ThreadsThatWriteMeanwhileLoseNothing) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer holds signals back";
#endif
  std::atomic<bool> stop{false};
  std::atomic<u64> mismatches{0};
  const auto count = [&](std::size_t page) {
    auto* const word = reinterpret_cast<volatile u64*>(memory_ + page * kPage);
    u64 expected = 0;
    *word = 0;
    while (!stop) {
      if (*word != expected) ++mismatches;
      *word = ++expected;
    }
  };
  std::thread first(count, 1), second(count, 9);
  for (int i = 0; i < 200; ++i) {
    const Descriptor file(::memfd_create("test", MFD_CLOEXEC));
    ASSERT_EQ(::ftruncate(file.get(), kSize), 0);
    EXPECT_TRUE(replace_memory(address_of(memory_), kSize, file.get()));
    std::this_thread::yield();
  }
  stop = true;
  first.join();
  second.join();
  EXPECT_EQ(mismatches, 0u);
}

}  // namespace
}  // namespace verbena::host
