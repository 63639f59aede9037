// The path without packets, between adapters of one process and of two.
#include "host/local/local_path.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <numeric>
#include <thread>

#include "base/prng.h"
#include "faults/spec.h"
#include "host/live_adapter.h"
#include "host/local/forbid_process_vm_for_test.h"
#include "host/rc_endpoint_for_test.h"

namespace verbena::host {
namespace {

constexpr u32 kLocalPathSize = RCEndpoint::kBufferSize;
constexpr u64 kReceiveId = 1, kSendId = 2;  // RCEndpoint's

std::shared_ptr<Adapter> open_local(const char* ip) {
  auto adapter = Adapter::open(choose_local_addresses(ip)->front());
  EXPECT_TRUE(adapter.has_value()) << (adapter ? "" : adapter.error().message);
  return *adapter;
}

u64 local_writes(RCEndpoint& endpoint) {
  return endpoint.adapter().enter()->counters().transport.local_write_requests;
}
u64 local_path_writes_of(RCEndpoint& endpoint, u32 size) {
  const u64 before = local_writes(endpoint);
  endpoint.post(SendOp::kRDMAWrite, size);
  EXPECT_EQ(endpoint.wait_for_completion().status, WQEStatus::kSuccess);
  return local_writes(endpoint) - before;
}

// Datagrams sent by its link.
u64 bursts(RCEndpoint& endpoint) {
  const Adapter::Session session = endpoint.adapter().enter();
  return static_cast<const LiveAdapter&>(endpoint.adapter()).link_counters().sent_bursts;
}

// Memory that another thread may be writing, as a device does, read where no thread reads it.
std::vector<u8> copy_of(std::vector<u8>& memory) {
  std::vector<u8> copy(memory.size());
  const iovec from{memory.data(), memory.size()}, to{copy.data(), copy.size()};
  EXPECT_EQ(::syscall(SYS_process_vm_readv, ::getpid(), &to, 1, &from, 1, 0),
            static_cast<long>(copy.size()));
  return copy;
}

class LocalPathTest : public testing::Test {
 protected:
  LocalPathTest() : a_(open_local("127.0.0.91")), b_(open_local("127.0.0.92")) {
    a_.connect(b_.self());
    b_.connect(a_.self());
    std::iota(a_.buffer().begin(), a_.buffer().end(), u8{3});
  }
  void TearDown() override {
    for (RCEndpoint* endpoint : {&a_, &b_}) (void)endpoint->adapter().set_faults({}, 1);
  }

  RCEndpoint a_, b_;
};

TEST_F(LocalPathTest, AWriteIsDoneWhenItIsPosted) {
  a_.post(SendOp::kRDMAWrite, kLocalPathSize);
  EXPECT_EQ(a_.buffer(), b_.buffer());
  EXPECT_EQ(a_.wait_for_completion().status, WQEStatus::kSuccess);
  const Adapter::Session target = b_.adapter().enter();
  EXPECT_EQ(target->counters().transport.rx_write_requests, 1u);
}

TEST_F(LocalPathTest, ALongReadIsDoneWhenAPollWaitsForIt) {
  a_.post(SendOp::kRDMARead, kLocalPathSize);
  EXPECT_EQ(a_.wait_for_completion().status, WQEStatus::kSuccess);
  EXPECT_EQ(a_.buffer(), b_.buffer());
  const Adapter::Session reader = a_.adapter().enter();
  EXPECT_EQ(reader->counters().transport.local_read_requests, 1u);
}

// By the helper.
TEST_F(LocalPathTest, ALongReadIsDoneWithoutAPoll) {
  a_.post(SendOp::kRDMARead, kLocalPathSize);
  for (int i = 0; i < 1000 && copy_of(a_.buffer()) != b_.buffer(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(copy_of(a_.buffer()), b_.buffer());
}

TEST_F(LocalPathTest, ALongReadIsDoneBeforeTheProgramSleeps) {
  a_.post(SendOp::kRDMARead, kLocalPathSize);
  a_.adapter().request_notification(a_.cq(), NotifyOn::kAnyCompletion);
  EXPECT_EQ(a_.buffer(), b_.buffer());
  // The event of that READ has ended the request: a program may poll before it asks for the next.
  EXPECT_EQ(a_.wait_for_completion().status, WQEStatus::kSuccess);
  std::ranges::fill(a_.buffer(), u8{0});
  a_.adapter().request_notification(a_.cq(), NotifyOn::kAnyCompletion);
  a_.post(SendOp::kRDMARead, kLocalPathSize);
  EXPECT_EQ(a_.buffer(), b_.buffer());
}

// A run of long WRITEs, of a program that has polled after others like it.
TEST_F(LocalPathTest, LongWritesAreDoneSoonWithoutAPoll) {
  for (u32 run = 0; run <= PollHabit::kRuns; ++run) {
    for (int i = 0; i < 3; ++i) a_.post(SendOp::kRDMAWrite, kLocalPathSize);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(a_.wait_for_completion().status, WQEStatus::kSuccess);
  }
  a_.post(SendOp::kRDMAWrite, 8);
  const u64 before = local_writes(a_);
  for (int i = 0; i < 2; ++i) a_.post(SendOp::kRDMAWrite, kLocalPathSize);
  for (int i = 0; i < 1000 && local_writes(a_) != before + 2; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(local_writes(a_), before + 2);
}

// As a card counts what it sends to itself.
TEST_F(LocalPathTest, CopiesCountAsPackets) {
  constexpr u64 kPackets = kLocalPathSize / 4096;
  EXPECT_EQ(local_path_writes_of(a_, kLocalPathSize), 1u);
  const auto packets = [](RCEndpoint& endpoint) {
    const Adapter::Session device = endpoint.adapter().enter();
    const Counters& counters = device->counters();
    return std::pair(counters.port_xmit_packets, counters.port_rcv_packets);
  };
  EXPECT_EQ(packets(a_), std::pair(kPackets, u64{1}));
  EXPECT_EQ(packets(b_), std::pair(u64{1}, kPackets));
  const Adapter::Session target = b_.adapter().enter();
  const QPTraffic traffic = target->traffic_of(target->find_qp_from(QPN{0}));
  EXPECT_EQ(traffic.received_packets, kPackets);
  EXPECT_GT(traffic.received_bytes, kLocalPathSize);
  EXPECT_EQ(traffic.received_bytes, target->counters().port_rcv_bytes);
}

TEST_F(LocalPathTest, SendsAndWritesKeepTheirOrder) {
  for (int i = 0; i < 100; ++i) {
    b_.post_receive();
    a_.buffer()[7] = static_cast<u8>(i);
    a_.post(SendOp::kRDMAWrite, kLocalPathSize);
    a_.post(SendOp::kSend, 4);
    EXPECT_EQ(b_.wait_for_completion().status, WQEStatus::kSuccess);
    EXPECT_EQ(b_.buffer()[7], static_cast<u8>(i));
    EXPECT_EQ(a_.wait_for_completion().status, WQEStatus::kSuccess);
    EXPECT_EQ(a_.wait_for_completion().status, WQEStatus::kSuccess);
  }
}

// However the two places lie in their pages (staging.h).
TEST_F(LocalPathTest, CopiesAreWholeWhateverTheirAlignment) {
  constexpr u32 kLength = kLocalPathSize - 1, kLocalPathPage = 4096;
  std::vector<u8> memory(kLocalPathSize + 2 * kLocalPathPage);
  const u64 ours = reinterpret_cast<u64>(a_.buffer().data());
  const u64 start = reinterpret_cast<u64>(memory.data());
  for (const u32 further : {0u, 1u, 8u, 15u, 16u, 4081u, 4095u}) {
    const std::span<u8> theirs(memory.data() + (ours + further - start) % kLocalPathPage,
                               kLocalPathSize);
    a_.aim_at(b_.register_common(theirs));
    std::ranges::fill(memory, u8{0});
    EXPECT_EQ(local_path_writes_of(a_, kLength), 1u);
    EXPECT_TRUE(std::equal(theirs.begin(), theirs.end() - 1, a_.buffer().begin())) << further;
    EXPECT_EQ(theirs.back(), 0);
    const std::vector<u8> written = a_.buffer();
    std::ranges::fill(a_.buffer(), u8{0});
    a_.post(SendOp::kRDMARead, kLength);
    EXPECT_EQ(a_.wait_for_completion().status, WQEStatus::kSuccess);
    EXPECT_TRUE(std::equal(theirs.begin(), theirs.end() - 1, a_.buffer().begin())) << further;
    EXPECT_EQ(a_.buffer().back(), 0);
    std::ranges::copy(written, a_.buffer().begin());
  }
}

TEST_F(LocalPathTest, SendsGoThroughMemory) {
  for (const u32 size : {8u, kLocalPathSize}) {
    b_.post_receive();
    a_.post(SendOp::kSend, size);
    EXPECT_EQ(b_.wait_for_completion().byte_length, size);
    EXPECT_EQ(a_.wait_for_completion().status, WQEStatus::kSuccess);
  }
  EXPECT_EQ(a_.buffer(), b_.buffer());
  EXPECT_EQ(bursts(a_), 0u);
  EXPECT_EQ(bursts(b_), 0u);
}

// While its sender still holds its adapter.
TEST_F(LocalPathTest, AShortSendIsSeenBeforeItsSenderIsDoneWithIt) {
  b_.post_receive();
  {
    const Adapter::Session sender = a_.adapter().enter();
    a_.post_in(sender, SendOp::kSend, 8);
    EXPECT_EQ(b_.wait_for_completion().byte_length, 8u);
  }
  EXPECT_EQ(a_.wait_for_completion().status, WQEStatus::kSuccess);
}

// SENDs, with receives or before them, among WRITEs: some as packets, some copied.
TEST_F(LocalPathTest, AnyMixKeepsItsOrder) {
  constexpr std::array kOps{SendOp::kSend, SendOp::kSendWithImmediate, SendOp::kRDMAWrite,
                            SendOp::kRDMAWriteWithImmediate};
  PRNG prng(7);
  for (u32 round = 0; round < 300; ++round) {
    RCEndpoint& from = round % 2 == 0 ? a_ : b_;
    RCEndpoint& to = round % 2 == 0 ? b_ : a_;
    const bool receives_first = prng.below(8) != 0;  // else it answers that there is none
    const u32 messages = 1 + static_cast<u32>(prng.below(20));
    std::ranges::generate(from.buffer(), [&] { return static_cast<u8>(prng.below(256)); });
    std::vector<u32> wanted, got;
    for (u32 i = 0; i < messages && receives_first; ++i) to.post_receive();
    for (u32 i = 0; i < messages; ++i) {
      const SendOp op = i + 1 == messages ? SendOp::kSend : kOps[prng.below(kOps.size())];
      const u32 size = i + 1 == messages ? kLocalPathSize : static_cast<u32>(prng.below(9000));
      from.post(op, size);
      if (op != SendOp::kRDMAWrite) wanted.push_back(size);
    }
    for (u32 i = 0; i < messages && !receives_first; ++i) to.post_receive();
    while (got.size() < wanted.size()) {
      const CQE cqe = to.wait_for_completion();
      ASSERT_EQ(cqe.status, WQEStatus::kSuccess);
      got.push_back(cqe.byte_length);
    }
    EXPECT_EQ(got, wanted);
    for (u32 i = 0; i < messages; ++i)
      ASSERT_EQ(from.wait_for_completion().status, WQEStatus::kSuccess);
    EXPECT_EQ(from.buffer(), to.buffer());
    for (std::size_t left = messages - wanted.size(); left != 0; --left) {  // receives
      from.post(SendOp::kSend, 0);
      EXPECT_EQ(to.wait_for_completion().status, WQEStatus::kSuccess);
      EXPECT_EQ(from.wait_for_completion().status, WQEStatus::kSuccess);
    }
  }
}

TEST_F(LocalPathTest, PacketsThatAreNoFramesAreCounted) {
  for (int i = 0; i < 4; ++i) b_.post_receive();
  for (int i = 0; i < 3; ++i) {
    a_.post(SendOp::kSend, 5000);  // two packets
    EXPECT_EQ(b_.wait_for_completion().status, WQEStatus::kSuccess);
    EXPECT_EQ(a_.wait_for_completion().status, WQEStatus::kSuccess);
  }
  const Adapter::Session sender = a_.adapter().enter();
  EXPECT_EQ(sender->counters().port_xmit_packets, 6u);
  EXPECT_EQ(sender->counters().port_rcv_packets, 3u);
}

TEST_F(LocalPathTest, WithFaultsOnEitherSideSendsAreDatagrams) {
  for (RCEndpoint* faulty : {&a_, &b_}) {
    (void)faulty->adapter().set_faults(*faults::parse_rules("delay by=1us nth=1"), 1);
    const u64 before = bursts(a_);
    b_.post_receive();
    a_.post(SendOp::kSend, 8);
    EXPECT_EQ(b_.wait_for_completion().status, WQEStatus::kSuccess);
    EXPECT_EQ(a_.wait_for_completion().status, WQEStatus::kSuccess);
    EXPECT_GT(bursts(a_), before);
    (void)faulty->adapter().set_faults({}, 1);
  }
}

TEST_F(LocalPathTest, WithFaultsOnEitherSideAllIsPackets) {
  EXPECT_EQ(local_path_writes_of(a_, 100), 1u);
  for (RCEndpoint* faulty : {&a_, &b_}) {
    (void)faulty->adapter().set_faults(*faults::parse_rules("delay by=1us nth=1"), 1);
    EXPECT_EQ(local_path_writes_of(a_, 100), 0u);
    (void)faulty->adapter().set_faults({}, 1);
    for (int i = 0; i < 64; ++i) (void)local_path_writes_of(a_, 100);  // it asks again
    EXPECT_EQ(local_path_writes_of(a_, 100), 1u);
  }
}

TEST_F(LocalPathTest, AKeyThatIsNotThereIsAnsweredAsOnTheWire) {
  RCEndpoint::Peer peer = b_.self();
  peer.r_key ^= 0x100;
  RCEndpoint a(open_local("127.0.0.91")), b(open_local("127.0.0.92"));
  peer.qpn = b.self().qpn;
  a.connect(peer);
  b.connect(a.self());
  a.post(SendOp::kRDMAWrite, 100);
  EXPECT_EQ(a.wait_for_completion().status, WQEStatus::kRemoteAccess);
}

// Fate: the later state of registered memory: another protection of its pages, or unmapped.
enum class Fate { kReadOnly, kNoAccess, kUnmapped };
void meet(Fate fate, u8* page, u32 length) {
  switch (fate) {
    case Fate::kReadOnly: ASSERT_EQ(::mprotect(page, length, PROT_READ), 0); return;
    case Fate::kNoAccess: ASSERT_EQ(::mprotect(page, length, PROT_NONE), 0); return;
    case Fate::kUnmapped: ASSERT_EQ(::munmap(page, length), 0); return;
  }
}

// Messages of any length: each length is copied in its own way.
TEST_F(LocalPathTest, ProtectionOfPagesIsRespectedAsOnTheWire) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer's memcpy holds signals back: a fault in it never ends";
#endif
  constexpr u32 kLocalPathPage = 4096;
  for (const Fate fate : {Fate::kReadOnly, Fate::kNoAccess, Fate::kUnmapped})
    for (const SendOp op : {SendOp::kRDMAWrite, SendOp::kRDMARead})
      for (const u32 size : {1u, 4u, 8u, 100u, kLocalPathPage}) {
        RCEndpoint a(open_local("127.0.0.91")), b(open_local("127.0.0.92"));
        auto* const memory = static_cast<u8*>(::mmap(
            nullptr, kLocalPathPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        a.connect(b.register_common({memory, kLocalPathPage}));
        b.connect(a.self());
        std::ranges::fill(a.buffer(), u8{1});
        EXPECT_EQ(local_path_writes_of(a, size), 1u);
        meet(fate, memory, kLocalPathPage);
        std::ranges::fill(a.buffer(), u8{2});
        a.post(op, size);
        const bool is_allowed = fate == Fate::kReadOnly && op == SendOp::kRDMARead;
        EXPECT_EQ(a.wait_for_completion().status,
                  is_allowed ? WQEStatus::kSuccess : WQEStatus::kRemoteAccess)
            << size;
        if (fate == Fate::kUnmapped) continue;
        ASSERT_EQ(::mprotect(memory, kLocalPathPage, PROT_READ), 0);
        EXPECT_EQ(std::accumulate(memory, memory + kLocalPathPage, 0u), size)
            << "as the first WRITE left it";
        ::munmap(memory, kLocalPathPage);
      }
}

// Memory that was deregistered is its owner's alone: a peer that was told of the key and goes on
// writing changes nothing in it from then on.
TEST_F(LocalPathTest, NothingIsWrittenAfterDeregistration) {
  std::atomic<bool> stop{false};
  std::thread writer([this, &stop] {
    while (!stop) {
      a_.post(SendOp::kRDMAWrite, kLocalPathSize);
      (void)a_.wait_for_completion();
    }
  });
  while (__atomic_load_n(&b_.buffer()[kLocalPathSize - 1], __ATOMIC_ACQUIRE) == 0)
    std::this_thread::yield();
  b_.deregister();
  std::ranges::fill(b_.buffer(), u8{0});
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(std::ranges::count(b_.buffer(), u8{0}), kLocalPathSize);
    std::this_thread::yield();
  }
  stop = true;
  writer.join();
}

TEST(LocalPathChoiceTest, TheEnvironmentTurnsItOff) {
  ::setenv("VERBENA_LOCAL", "off", 1);
  EXPECT_EQ((*LocalPath::open(9, {}))->ports().peers, nullptr);
  EXPECT_EQ((*LocalPath::open(9, {}))->ports().qps, nullptr);
  EXPECT_NE((*LocalPath::open(9, {}))->ports().keys, nullptr) << "for those who import";
  ::setenv("VERBENA_LOCAL", "perhaps", 1);
  EXPECT_FALSE(LocalPath::open(9, {}));
  ::setenv("VERBENA_LOCAL", "on", 1);
  EXPECT_NE((*LocalPath::open(9, {}))->ports().peers, nullptr);
  ::unsetenv("VERBENA_LOCAL");
  EXPECT_NE((*LocalPath::open(9, {}))->ports().peers, nullptr);
}

// --- a peer in another process

class LocalPeerTest : public testing::Test {
 protected:
  // A process with an endpoint on 127.0.0.94 that answers so many SENDs, polling for each, and then
  // does nothing but be there.
  void start_peer(u32 answers = 0) {
    std::array<int, 2> to_child{}, to_parent{};
    ASSERT_EQ(::pipe(to_child.data()), 0);
    ASSERT_EQ(::pipe(to_parent.data()), 0);
    child_ = ::fork();
    if (child_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      RCEndpoint endpoint(open_local("127.0.0.94"));
      talk(endpoint, to_child[0], to_parent[1]);
      for (u32 i = 0; i < answers; ++i) answer(endpoint);
      ::poll(nullptr, 0, -1);
    }
    here_.emplace(open_local("127.0.0.93"));
    talk(*here_, to_parent[0], to_child[1]);
  }
  static void talk(RCEndpoint& endpoint, int read_fd, int write_fd) {
    RCEndpoint::Peer peer, self = endpoint.self();
    ASSERT_EQ(::write(write_fd, &self, sizeof(self)), static_cast<ssize_t>(sizeof(self)));
    ASSERT_EQ(::read(read_fd, &peer, sizeof(peer)), static_cast<ssize_t>(sizeof(peer)));
    endpoint.connect(peer, 1);
    endpoint.post_receive();
    ASSERT_EQ(::write(write_fd, "", 1), 1);
    char ready = 0;
    ASSERT_EQ(::read(read_fd, &ready, 1), 1);
  }
  static void answer(RCEndpoint& endpoint) {
    EXPECT_EQ(endpoint.wait_for_completion().wr_id, kReceiveId);
    endpoint.post_receive();
    endpoint.post(SendOp::kSend, 8);
    EXPECT_EQ(endpoint.wait_for_completion().wr_id, kSendId);
  }
  // Posted, done and answered.
  void ask() {
    here_->post(SendOp::kSend, 8);
    EXPECT_EQ(here_->wait_for_completion().status, WQEStatus::kSuccess);
    EXPECT_EQ(here_->wait_for_completion().status, WQEStatus::kSuccess);
    here_->post_receive();
  }
  void TearDown() override {
    if (child_ > 0) ::kill(child_, SIGKILL);
    if (child_ > 0) ::waitpid(child_, nullptr, 0);
  }

  pid_t child_ = 0;
  std::optional<RCEndpoint> here_;
};

TEST_F(LocalPeerTest, IsWrittenToWhileItSleeps) {
  start_peer();
  EXPECT_EQ(local_path_writes_of(*here_, kLocalPathSize), 1u);
  ::kill(child_, SIGSTOP);
  EXPECT_EQ(local_path_writes_of(*here_, kLocalPathSize), 1u);
}

TEST_F(LocalPeerTest, ThatMayNotBeTouchedGetsPackets) {
  start_peer();
  EXPECT_EQ(local_path_writes_of(*here_, 100), 1u);
  std::thread([this] {
    forbid_process_vm();
    EXPECT_EQ(local_path_writes_of(*here_, 100), 0u);
    EXPECT_EQ(local_path_writes_of(*here_, 100), 0u);
  }).join();
}

// The child has neither the adapter nor its lock; the parent's memory and keys are as they were.
TEST_F(LocalPeerTest, IsWrittenToByOneThatHasForked) {
  start_peer();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(local_path_writes_of(*here_, kLocalPathSize), 1u);
}

TEST_F(LocalPeerTest, ThatSleepsIsWokenBySends) {
  start_peer();
  here_->post(SendOp::kSend, kLocalPathSize);
  EXPECT_EQ(here_->wait_for_completion().status, WQEStatus::kSuccess);
  EXPECT_EQ(bursts(*here_), 0u);
}

// While both poll, each looks at the other's ring without a bell. Then one polls no more.
TEST_F(LocalPeerTest, ThatHasPolledForLongIsWokenBySends) {
  constexpr u32 kAnswers = 100;
  start_peer(kAnswers);
  for (u32 i = 0; i < kAnswers; ++i) ask();
  here_->post(SendOp::kSend, 8);
  EXPECT_EQ(here_->wait_for_completion().status, WQEStatus::kSuccess);
  EXPECT_EQ(bursts(*here_), 0u);
}

TEST_F(LocalPeerTest, ThatWasKilledTakesNoSends) {
  start_peer();
  ::kill(child_, SIGKILL);
  ::waitpid(child_, nullptr, 0);
  child_ = 0;
  here_->post(SendOp::kSend, 100);
  EXPECT_EQ(here_->wait_for_completion().status, WQEStatus::kRetryExceeded);
}

// In mid-stream: what it has not answered fails, and the rest is flushed.
TEST_F(LocalPeerTest, ThatIsKilledWhileItPolls) {
  constexpr u32 kAnswers = 1000, kAsked = 50, kMore = 10;
  start_peer(kAnswers);
  for (u32 i = 0; i < kAsked; ++i) ask();
  ::kill(child_, SIGKILL);
  ::waitpid(child_, nullptr, 0);
  child_ = 0;
  for (u32 i = 0; i < kMore; ++i) here_->post(SendOp::kSend, 8);
  EXPECT_EQ(here_->wait_for_completion().status, WQEStatus::kRetryExceeded);
  for (u32 i = 0; i < kMore; ++i)  // one of them is the receive
    EXPECT_EQ(here_->wait_for_completion().status, WQEStatus::kFlushed);
}

// One peer for each test: after the first fork the process has threads, and tsan does not allow
// another fork then.
class KilledPeerTest : public LocalPeerTest, public testing::WithParamInterface<u32> {};

TEST_P(KilledPeerTest, IsNoLongerThere) {
  const u32 size = GetParam();
  start_peer();
  EXPECT_EQ(local_path_writes_of(*here_, size), 1u);
  ::kill(child_, SIGKILL);
  ::waitpid(child_, nullptr, 0);
  child_ = 0;
  here_->post(SendOp::kRDMAWrite, size);
  EXPECT_EQ(here_->wait_for_completion().status, WQEStatus::kRetryExceeded);
}

INSTANTIATE_TEST_SUITE_P(ByItsFileAndWithout, KilledPeerTest, testing::Values(8u, 100u));

}  // namespace
}  // namespace verbena::host
