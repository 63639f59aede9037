#include "host/local/memory_file.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "host/page_for_test.h"

namespace verbena::host {
namespace {

using test::address_of;
using test::kPage;

u32 own_pid() { return static_cast<u32>(::getpid()); }

// A page of this process.
class Page {
 public:
  explicit Page(int flags = MAP_PRIVATE | MAP_ANONYMOUS)
      : bytes_(static_cast<u8*>(::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, flags, -1, 0))) {}
  ~Page() { ::munmap(bytes_, kPage); }
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;

  u8* data() const { return bytes_; }
  u64 address() const { return address_of(bytes_); }
  void unmap() const { ::munmap(bytes_, kPage); }
  void protect(int rights) const { ASSERT_EQ(::mprotect(bytes_, kPage, rights), 0); }

 private:
  u8* bytes_;
};

constexpr std::array<u8, 8> kData = {1, 2, 3, 4, 5, 6, 7, 8};

TEST(MemoryFileTest, OneStoreOrOnePageSuits) {
  for (const u64 length : {1u, 4u, 8u}) {
    EXPECT_TRUE(MemoryFile::suits_write(0x1000, length));
    EXPECT_EQ(MemoryFile::suits_write(0x1001, length), length == 1);
  }
  for (const u64 length : {2u, 3u, 5u, 16u}) EXPECT_FALSE(MemoryFile::suits_write(0x1000, length));
  EXPECT_TRUE(MemoryFile::suits_read(0x1000, 4096));
  EXPECT_TRUE(MemoryFile::suits_read(0x1ff8, 8));
  EXPECT_FALSE(MemoryFile::suits_read(0x1ff9, 8));
  EXPECT_FALSE(MemoryFile::suits_read(0x1000, 4097));
}

TEST(MemoryFileTest, WhatIsThereIsWrittenAndRead) {
  const MemoryFile file(own_pid());
  ASSERT_TRUE(file.is_open());
  const Page page;
  EXPECT_TRUE(file.write(page.address() + 16, kData));
  EXPECT_TRUE(std::equal(kData.begin(), kData.end(), page.data() + 16));
  std::array<u8, kPage> read{};
  EXPECT_TRUE(file.read(page.address(), read));
  EXPECT_TRUE(std::equal(read.begin(), read.end(), page.data()));
}

TEST(MemoryFileTest, WhatIsNotThereIsNot) {
  const MemoryFile file(own_pid());
  const Page page;
  page.unmap();
  std::array<u8, 8> read{};
  EXPECT_FALSE(file.write(page.address(), kData));
  EXPECT_FALSE(file.read(page.address(), read));
  EXPECT_FALSE(file.read(address_of(kData.data()), {page.data(), 8})) << "nor our own memory";
}

// As a card writes to pages that it has pinned. Kernels may be told not to.
TEST(MemoryFileTest, PrivateMemoryThatIsReadOnlyMayBeWritten) {
  const MemoryFile file(own_pid());
  const Page page;
  page.protect(PROT_READ);
  const bool written = file.write(page.address(), kData);
  EXPECT_EQ(page.data()[7], written ? 8 : 0);
}

TEST(MemoryFileTest, CommonMemoryThatIsReadOnlyIsNotWritten) {
  const MemoryFile file(own_pid());
  const Page page(MAP_SHARED | MAP_ANONYMOUS);
  page.protect(PROT_READ);
  EXPECT_FALSE(file.write(page.address(), kData));
  EXPECT_EQ(page.data()[7], 0);
}

TEST(MemoryFileTest, AProcessThatHasEndedHasNone) {
  const Page page;
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::pause();
  }
  const MemoryFile file(static_cast<u32>(child));
  ASSERT_TRUE(file.is_open());
  EXPECT_TRUE(file.write(page.address(), kData));
  EXPECT_EQ(page.data()[7], 0) << "the child's, not ours";
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  std::array<u8, 8> read{};
  EXPECT_FALSE(file.write(page.address(), kData));
  EXPECT_FALSE(file.read(page.address(), read));
  EXPECT_FALSE(MemoryFile(static_cast<u32>(child)).is_open());
}

TEST(MemoryFileTest, OfNoneIsNotOpen) {
  EXPECT_FALSE(MemoryFile().is_open());
  EXPECT_FALSE(MemoryFile(0).is_open());
}

}  // namespace
}  // namespace verbena::host
