#include "host/os/memory_faults.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "host/os/page_for_test.h"
#include "memory/ordered_copy.h"
#include "memory/sg_walk.h"
#include "memory/touch.h"

namespace verbena::host {
namespace {

using test::kPage;

// Pages of memory that can be taken away.
class Pages {
 public:
  explicit Pages(std::size_t count, int fd = -1)
      : size_(count * kPage),
        at_(static_cast<u8*>(::mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                                    fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0))) {
    EXPECT_NE(at_, MAP_FAILED);
  }
  ~Pages() { ::munmap(at_, size_); }
  void take(std::size_t index) { EXPECT_EQ(::mprotect(at_ + index * kPage, kPage, PROT_NONE), 0); }
  MutableBytes bytes() const { return {at_, size_}; }

 private:
  std::size_t size_;
  u8* at_;
};

struct MemoryFaultsTest : testing::Test {
  MemoryFaultsTest() { survive_memory_faults(); }
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "ThreadSanitizer's memcpy holds signals back: a fault in it never ends";
#endif
  }
};

TEST_F(MemoryFaultsTest, WhatIsThereIsAccessed) {
  const Pages pages(2);
  EXPECT_TRUE(is_readable(pages.bytes()));
  const std::array<u8, 5> data = {1, 2, 3, 4, 5};
  EXPECT_TRUE(ordered_copy(pages.bytes().data() + 10, data));
  EXPECT_EQ(pages.bytes()[14], 5);
}

TEST_F(MemoryFaultsTest, WhatHasGoneIsNoticedEveryTime) {
  Pages pages(3);
  pages.take(1);
  const std::array<u8, 16> data{};
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(is_readable(pages.bytes()));
    EXPECT_FALSE(ordered_copy(pages.bytes().data() + 2 * kPage - data.size(), data));
    EXPECT_FALSE(ordered_copy(pages.bytes().data() + kPage - 8, data)) << "across its edge";
  }
  EXPECT_TRUE(is_readable(pages.bytes().first(kPage)));
  EXPECT_TRUE(is_readable(pages.bytes().last(kPage)));
}

TEST_F(MemoryFaultsTest, ProtectedMemoryIsToldFromMemoryThatHasGone) {
  Pages pages(3);
  const std::array<u8, 16> data{};
  u8* const second = pages.bytes().data() + kPage;
  ASSERT_EQ(::mprotect(second, kPage, PROT_READ), 0);
  EXPECT_TRUE(is_readable(pages.bytes()));
  EXPECT_FALSE(ordered_copy(second + 8, data));
  EXPECT_TRUE(last_touch_fault.is_protected);
  EXPECT_GE(last_touch_fault.at, second + 8);
  EXPECT_LT(last_touch_fault.at, second + 24);
  ASSERT_EQ(::munmap(second, kPage), 0);
  EXPECT_FALSE(ordered_copy(second + 8, data));
  EXPECT_FALSE(last_touch_fault.is_protected);
}

TEST_F(MemoryFaultsTest, ARefusedElementIsFoundByWhereItFaulted) {
  const Pages pages(2);
  ProtectionTable table(4, PRNG(1));
  u8* const at = pages.bytes().data();
  const u64 address = reinterpret_cast<u64>(at);
  const LKey key = table.register_mr(PDId{1}, at, 2 * kPage, address, Access::kLocalWrite)->l_key;
  const std::array<SGE, 2> list = {SGE{address, 8, key}, SGE{address + kPage, 8, key}};
  ASSERT_EQ(::mprotect(at + kPage, kPage, PROT_READ), 0);
  const std::array<u8, 16> data{};
  EXPECT_EQ(scatter(table, PDId{1}, list, 0, data), MemoryFault::kProtected);
  const RefusedSGE refused = find_refused(table, PDId{1}, list, Access::kLocalWrite);
  EXPECT_EQ(refused.fault, MemoryFault::kProtected);
  EXPECT_EQ(refused.index, 1u);
  EXPECT_EQ(scatter(table, PDId{1}, std::span(list).last(1), 0, Bytes(data).first(8)),
            MemoryFault::kProtected);
}

TEST_F(MemoryFaultsTest, AFileThatWasCutShortIsNoticed) {
  const int fd = ::memfd_create("cut", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(fd, 2 * kPage), 0);
  const Pages pages(2, fd);
  EXPECT_TRUE(is_readable(pages.bytes()));
  ASSERT_EQ(::ftruncate(fd, kPage), 0);
  EXPECT_FALSE(is_readable(pages.bytes())) << "SIGBUS";
  ::close(fd);
}

TEST_F(MemoryFaultsTest, AFaultChangesNeitherTheMaskNorTheFloatingPointMode) {
  Pages pages(1);
  pages.take(0);
  const unsigned mode = __builtin_ia32_stmxcsr() | 0x8040;  // flush to zero, as numerics have it
  __builtin_ia32_ldmxcsr(mode);
  EXPECT_FALSE(is_readable(pages.bytes()));
  EXPECT_EQ(__builtin_ia32_stmxcsr() & 0x8040u, 0x8040u);
  __builtin_ia32_ldmxcsr(mode & ~0x8040u);
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  EXPECT_EQ(sigismember(&mask, SIGSEGV), 0);
}

TEST_F(MemoryFaultsTest, EveryThreadHasItsOwn) {
  Pages pages(1);
  pages.take(0);
  std::array<std::thread, 4> threads;
  for (std::thread& thread : threads)
    thread = std::thread([&] {
      for (int i = 0; i < 1000; ++i) EXPECT_FALSE(is_readable(pages.bytes()));
    });
  for (std::thread& thread : threads) thread.join();
}

// --- what is none of our business

// The program's own handler, from before ours.
int exit_status_on_fault = 0;  // 0: the default action

void on_fault_of_the_program(int signal, siginfo_t* info, void*) {
  if (exit_status_on_fault != 0 && info != nullptr) ::_exit(exit_status_on_fault);
  ::signal(signal, SIG_DFL);
  if (info->si_code <= 0) ::raise(signal);
}

[[maybe_unused]] const bool kHandlerIsSet = [] {
  struct sigaction action = {};
  action.sa_sigaction = on_fault_of_the_program;
  action.sa_flags = SA_SIGINFO;
  return ::sigaction(SIGSEGV, &action, nullptr) == 0;
}();

[[noreturn]] void fault() {
  Pages pages(1);
  pages.take(0);
  (void)*static_cast<volatile u8*>(pages.bytes().data());
  std::abort();
}

using MemoryFaultsDeathTest = MemoryFaultsTest;

TEST_F(MemoryFaultsDeathTest, AFaultOfTheProgramIsItsOwn) {
  EXPECT_EXIT(fault(), testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(MemoryFaultsDeathTest, TheHandlerThatWasThereBeforeGetsIt) {
  exit_status_on_fault = 42;
  EXPECT_EXIT(fault(), testing::ExitedWithCode(42), "");
  EXPECT_EXIT((::raise(SIGSEGV), std::abort()), testing::ExitedWithCode(42), "");
  exit_status_on_fault = 0;
}

TEST_F(MemoryFaultsDeathTest, ASignalThatWasSentIsNoFault) {
  EXPECT_EXIT((::raise(SIGSEGV), std::abort()), testing::KilledBySignal(SIGSEGV), "");
}

}  // namespace
}  // namespace verbena::host
