// The path without packets into memory that both processes map: no system call writes it, and what
// a key has granted is let go of with the key.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <thread>

#include "host/live_adapter.h"
#include "host/local/forbid_process_vm_for_test.h"
#include "host/rc_endpoint_for_test.h"

namespace verbena::host {
namespace {

constexpr u32 kSize = RCEndpoint::kBufferSize;

std::shared_ptr<Adapter> open_on_path(const char* ip) {
  auto adapter = Adapter::open(choose_local_addresses(ip)->front());
  EXPECT_TRUE(adapter.has_value()) << (adapter ? "" : adapter.error().message);
  return *adapter;
}

u64 local_writes_of(RCEndpoint& endpoint, u32 size) {
  const auto count = [&] {
    return endpoint.adapter().enter()->counters().transport.local_write_requests;
  };
  const u64 before = count();
  endpoint.post(SendOp::kRDMAWrite, size);
  EXPECT_EQ(endpoint.wait_for_completion().status, WQEStatus::kSuccess);
  return count() - before;
}

// In all of this process.
u32 mappings_named(const std::string& name) {
  std::ifstream maps("/proc/self/maps");
  u32 count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find(name) != std::string::npos;
  return count;
}

class CommonPathTest : public testing::Test {
 protected:
  CommonPathTest() {
    ::setenv("VERBENA_SHARE", "on", 1);
    a_.emplace(open_on_path("127.0.1.91"));
    b_.emplace(open_on_path("127.0.1.92"));
    ::unsetenv("VERBENA_SHARE");
    memory_ = static_cast<u8*>(
        ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    a_->connect(b_->register_common({memory_, kSize}));
    b_->connect(a_->self());
    std::iota(a_->buffer().begin(), a_->buffer().end(), u8{3});
  }
  ~CommonPathTest() override {
    b_.reset();
    ::munmap(memory_, kSize);
  }

  u8* memory_ = nullptr;
  std::optional<RCEndpoint> a_, b_;
};

TEST_F(CommonPathTest, AWriteNeedsNoCallOfTheKernel) {
  std::thread([this] {
    forbid_process_vm();
    for (const u32 size : {1u, 8u, 100u, kSize}) EXPECT_EQ(local_writes_of(*a_, size), 1u);
  }).join();
  EXPECT_TRUE(std::equal(memory_, memory_ + kSize, a_->buffer().begin()));
}

// Pages that are about to become common are protected until they are.
TEST_F(CommonPathTest, ProtectionHoldsWritesOff) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer's memcpy holds signals back: a fault in it never ends";
#endif
  void* const page =
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  u8* const part = static_cast<u8*>(page) + 64;  // no whole page, so it stays private
  a_->aim_at(b_->register_common({part, 64}));
  EXPECT_EQ(local_writes_of(*a_, 8), 1u);
  EXPECT_EQ(part[7], a_->buffer()[7]);
  part[7] = 0;
  ASSERT_EQ(::mprotect(page, 4096, PROT_READ), 0);
  a_->post(SendOp::kRDMAWrite, 8);
  EXPECT_EQ(a_->wait_for_completion().status, WQEStatus::kRemoteAccess);
  EXPECT_EQ(part[7], 0);
  b_->deregister();
  ::munmap(page, 4096);
}

TEST_F(CommonPathTest, TheProtectionOfTheOwnersPagesHolds) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer's memcpy holds signals back: a fault in it never ends";
#endif
  constexpr u32 kPageBytes = 4096;
  const auto until_noticed = [] {
    std::this_thread::sleep_for(std::chrono::nanoseconds(2 * PeerMappings::kMaxTrust.ns()));
  };
  EXPECT_EQ(local_writes_of(*a_, kSize), 1u);
  ASSERT_EQ(::mprotect(memory_ + kPageBytes, kPageBytes, PROT_READ), 0);
  until_noticed();
  EXPECT_EQ(local_writes_of(*a_, 8), 1u) << "the page before can still be written";
  ASSERT_EQ(::mprotect(memory_ + kPageBytes, kPageBytes, PROT_READ | PROT_WRITE), 0);
  std::thread([this] {
    forbid_process_vm();
    EXPECT_EQ(local_writes_of(*a_, kSize), 1u) << "without the kernel again";
  }).join();

  const std::vector<u8> before(memory_, memory_ + kSize);
  ASSERT_EQ(::mprotect(memory_, kSize, PROT_READ), 0);
  until_noticed();
  a_->post(SendOp::kRDMARead, 8);
  EXPECT_EQ(a_->wait_for_completion().status, WQEStatus::kSuccess);
  std::ranges::fill(a_->buffer(), u8{0});
  a_->post(SendOp::kRDMAWrite, 8);
  EXPECT_EQ(a_->wait_for_completion().status, WQEStatus::kRemoteAccess);
  EXPECT_TRUE(std::ranges::equal(before, std::span(memory_, kSize)));
}

TEST_F(CommonPathTest, MappingsGoWithTheKeyEvenWhenTheRequesterIsIdle) {
  EXPECT_EQ(local_writes_of(*a_, 8), 1u);
  EXPECT_EQ(mappings_named("verbena-share"), 2u) << "its owner's and the requester's";
  b_->deregister();
  const Time deadline = monotonic_now() + RCEndpoint::kPatience;
  while (mappings_named("verbena-share") != 1 && monotonic_now() < deadline)
    std::this_thread::yield();
  EXPECT_EQ(mappings_named("verbena-share"), 1u);
}

TEST_F(CommonPathTest, ManyRegionsOneAfterTheOtherAreMappedInTurn) {
  for (u32 i = 0; i < 2 * PeerMappings::kMappings; ++i) {
    a_->aim_at(b_->register_common({memory_, kSize}));
    EXPECT_EQ(local_writes_of(*a_, 8), 1u);
  }
  EXPECT_LE(mappings_named("verbena-share"), 2u);
}

TEST_F(CommonPathTest, NothingIsWrittenAfterDeregistration) {
  std::atomic<bool> stop{false};
  std::thread writer([this, &stop] {
    while (!stop) {
      a_->post(SendOp::kRDMAWrite, kSize);
      (void)a_->wait_for_completion();
    }
  });
  while (__atomic_load_n(&memory_[kSize - 1], __ATOMIC_ACQUIRE) == 0) std::this_thread::yield();
  b_->deregister();
  std::fill(memory_, memory_ + kSize, u8{0});
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(std::count(memory_, memory_ + kSize, u8{0}), kSize);
    std::this_thread::yield();
  }
  stop = true;
  writer.join();
}

TEST(CommonPathChoiceTest, TheEnvironmentIsCheckedInOneLine) {
  for (const char* const variable : {"VERBENA_SHARE", "VERBENA_HUGE"}) {
    ::setenv(variable, "perhaps", 1);
    const auto path = LocalPath::open(9, {});
    ASSERT_FALSE(path);
    EXPECT_EQ(path.error().message, std::string(variable) + " is neither on nor off: perhaps");
    ::unsetenv(variable);
  }
}

// --- in another process

class CommonPeerTest : public testing::Test {
 protected:
  static void exchange(RCEndpoint& endpoint, RCEndpoint::Peer self, int read_fd, int write_fd) {
    RCEndpoint::Peer peer;
    ASSERT_EQ(::write(write_fd, &self, sizeof(self)), static_cast<ssize_t>(sizeof(self)));
    ASSERT_EQ(::read(read_fd, &peer, sizeof(peer)), static_cast<ssize_t>(sizeof(peer)));
    endpoint.connect(peer, 1);
    char ready = 0;
    ASSERT_EQ(::write(write_fd, "", 1), 1);
    ASSERT_EQ(::read(read_fd, &ready, 1), 1);
  }
  void SetUp() override {
    std::array<int, 2> to_child{}, to_parent{};
    ASSERT_EQ(::pipe(to_child.data()), 0);
    ASSERT_EQ(::pipe(to_parent.data()), 0);
    child_ = ::fork();
    if (child_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::setenv("VERBENA_SHARE", "on", 1);
      RCEndpoint endpoint(open_on_path("127.0.1.94"));
      void* const memory =
          ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      exchange(endpoint, endpoint.register_common({static_cast<u8*>(memory), kSize}), to_child[0],
               to_parent[1]);
      for (;;) ::pause();
    }
    here_.emplace(open_on_path("127.0.1.93"));
    exchange(*here_, here_->self(), to_parent[0], to_child[1]);
  }
  void TearDown() override { kill_peer(); }
  void kill_peer() {
    if (child_ > 0) ::kill(child_, SIGKILL);
    if (child_ > 0) ::waitpid(child_, nullptr, 0);
    child_ = 0;
  }

  pid_t child_ = 0;
  std::optional<RCEndpoint> here_;
};

TEST_F(CommonPeerTest, IsWrittenToByWhoDoesNotShareItself) {
  std::thread([this] {
    forbid_process_vm();
    EXPECT_EQ(local_writes_of(*here_, 8), 1u);
    EXPECT_EQ(local_writes_of(*here_, kSize), 1u);
  }).join();
}

TEST_F(CommonPeerTest, ThatWasKilledIsNoLongerThere) {
  EXPECT_EQ(local_writes_of(*here_, 8), 1u);
  kill_peer();
  here_->post(SendOp::kRDMAWrite, 8);
  EXPECT_EQ(here_->wait_for_completion().status, WQEStatus::kRetryExceeded);
}

TEST_F(CommonPeerTest, IsWrittenToByOneThatHasForked) {
  EXPECT_EQ(local_writes_of(*here_, 8), 1u);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(local_writes_of(*here_, kSize), 1u);
}

}  // namespace
}  // namespace verbena::host
