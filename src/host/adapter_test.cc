// Adapters on real sockets and threads: in one process on two addresses, and in two processes on
// one.
#include "host/adapter.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "host/events/event_wait.h"
#include "host/live_adapter.h"
#include "host/network/socket_address.h"
#include "host/progress/adaptive_mutex.h"
#include "host/queue_target_for_test.h"
#include "host/rc_endpoint_for_test.h"
#include "host/sharing/directory.h"
#include "host/sharing/qpn_slot.h"
#include "wire/roce/icrc.h"

namespace {
thread_local std::function<void()> while_core_is_offered;  // what another thread does then, once
}

extern "C" int sched_yield() noexcept {
  if (const auto others = std::exchange(while_core_is_offered, nullptr)) others();
  return static_cast<int>(::syscall(SYS_sched_yield));
}

namespace verbena::host {
namespace {

constexpr int kPatienceMs = 20'000;

LocalAddress address_of(const char* ip) { return choose_local_addresses(ip)->front(); }

std::shared_ptr<Adapter> open(const char* ip) {
  auto adapter = Adapter::open(address_of(ip));
  EXPECT_TRUE(adapter.has_value()) << (adapter ? "" : adapter.error().message);
  return *adapter;
}

// Waits until `memory` holds what `wanted` does, as a target of a WRITE does: without polling a CQ.
// The ACK that a requester gets orders what the target's helper thread has written before what
// follows. ThreadSanitizer sees no packets, but it sees the lock.
void order_after_helper(RCEndpoint& target) { (void)target.adapter().enter(); }

bool becomes(RCEndpoint& target, std::span<const u8> wanted) {
  const std::vector<u8>& memory = target.buffer();
  const Time deadline = monotonic_now() + RCEndpoint::kPatience;
  while (monotonic_now() < deadline) {
    if (__atomic_load_n(&memory[wanted.size() - 1], __ATOMIC_ACQUIRE) == wanted.back()) break;
    ::poll(nullptr, 0, 1);
  }
  order_after_helper(target);
  return std::equal(wanted.begin(), wanted.end(), memory.begin());
}

class AdapterTest : public testing::Test {
 protected:
  AdapterTest() : a_(open("127.0.0.81")), b_(open("127.0.0.82")) {
    a_.connect(b_.self());
    b_.connect(a_.self());
  }
  static void fill(RCEndpoint& endpoint, u8 seed) {
    std::iota(endpoint.buffer().begin(), endpoint.buffer().end(), seed);
  }

  RCEndpoint a_, b_;
};

TEST_F(AdapterTest, OneForEachAddress) {
  EXPECT_EQ(open("127.0.0.81").get(), &a_.adapter());
  EXPECT_NE(open("127.0.0.82").get(), &a_.adapter());
}

TEST_F(AdapterTest, ConfigurationFollowsTheAddress) {
  const DeviceConfig& config = a_.adapter().device().config();
  ASSERT_EQ(config.gids.size(), 4u);
  for (const GIDEntry& entry : config.gids) {
    EXPECT_EQ(entry.gid, *GID::parse("127.0.0.81"));
    EXPECT_EQ(entry.type, GIDType::kRoCEv2);
  }
  EXPECT_EQ(config.active_mtu, MTU::k4096);
  EXPECT_EQ(config.limits.max_qp, kQPNsPerSlot);
  EXPECT_TRUE(is_process_slot(slot_of(config.first_qpn.value)));
  EXPECT_NE(config.first_qpn, b_.adapter().device().config().first_qpn);
  EXPECT_GE(config.path.window_packets, 64u);
  EXPECT_LE(config.path.window_bytes, 1u << 20);
  EXPECT_EQ(config.path.shared_window_packets, 4096u);
  EXPECT_EQ(config.path.loss_response, LossResponse::kHalveWindow);
  EXPECT_EQ(config.path.min_probe_timeout, ms(4));
  EXPECT_EQ(config.path.min_ack_timeout, ms(1));
}

TEST_F(AdapterTest, SendIsReceived) {
  fill(a_, 5);
  b_.post_receive();
  a_.post(SendOp::kSend, 20000);
  const CQE received = b_.wait_for_completion();
  EXPECT_EQ(received.status, WQEStatus::kSuccess);
  EXPECT_EQ(received.op, CompletionOp::kReceive);
  EXPECT_EQ(received.byte_length, 20000u);
  EXPECT_EQ(a_.wait_for_completion().status, WQEStatus::kSuccess);
  EXPECT_TRUE(std::equal(a_.buffer().begin(), a_.buffer().begin() + 20000, b_.buffer().begin()));
}

TEST_F(AdapterTest, PingPong) {
  for (int i = 0; i < 200; ++i) {
    b_.post_receive();
    a_.post(SendOp::kSend, 8);
    EXPECT_EQ(b_.wait_for_completion().status, WQEStatus::kSuccess);
    EXPECT_EQ(a_.wait_for_completion().status, WQEStatus::kSuccess);
  }
}

TEST_F(AdapterTest, ATargetOfWritesNeedNotPoll) {
  fill(a_, 1);
  a_.post(SendOp::kRDMAWrite, RCEndpoint::kBufferSize);
  EXPECT_EQ(a_.wait_for_completion().status, WQEStatus::kSuccess);
  order_after_helper(b_);
  EXPECT_EQ(a_.buffer(), b_.buffer());
}

// As ib_write_lat does: polls for its own completion, then waits in memory.
TEST_F(AdapterTest, WaitingInMemoryBetweenPolls) {
  for (u8 i = 1; i < 100; ++i) {
    order_after_helper(a_);
    a_.buffer()[0] = i;
    a_.post(SendOp::kRDMAWrite, 1);
    EXPECT_EQ(a_.wait_for_completion().status, WQEStatus::kSuccess);
    ASSERT_TRUE(becomes(b_, std::span(&i, 1)));
    b_.post(SendOp::kRDMAWrite, 1);
    EXPECT_EQ(b_.wait_for_completion().status, WQEStatus::kSuccess);
  }
}

// A program that gets 0 here, and then learns of the peer's disconnection, would destroy the QP and
// count the completion as flushed.
TEST_F(AdapterTest, APollThatOfferedTheCoreReturnsWhatArrivedMeanwhile) {
  a_.post_receive();
  bool offered = false;
  while_core_is_offered = [&] {
    b_.post(SendOp::kSend, 8);
    offered = true;
  };
  const Time deadline = monotonic_now() + RCEndpoint::kPatience;
  CQE cqe;
  u32 count = 0;
  while (!offered && monotonic_now() < deadline) count = a_.adapter().poll_cq(a_.cq(), {&cqe, 1});
  ASSERT_TRUE(offered);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(b_.wait_for_completion().status, WQEStatus::kSuccess);
}

TEST(AdaptiveMutexTest, AThreadThatWaitsOffersItsCoreToNobody) {
  AdaptiveMutex mutex;
  std::atomic<bool> offered = false;
  mutex.lock();
  std::thread waiting([&] {
    while_core_is_offered = [&] { offered = true; };
    mutex.lock();
    mutex.unlock();
    while_core_is_offered = nullptr;
  });
  ::poll(nullptr, 0, 20);
  mutex.unlock();
  waiting.join();
  EXPECT_FALSE(offered);
}

TEST(AdaptiveMutexTest, OneThreadAtATime) {
  AdaptiveMutex mutex;
  int count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < 10'000; ++n) {
        const std::lock_guard lock(mutex);
        ++count;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 40'000);
}

TEST(AdapterEventTest, ASleeperIsWokenByACompletion) {
  QueueTarget target;
  RCEndpoint a(open("127.0.0.81")), b(open("127.0.0.82"), &target);
  a.connect(b.self());
  b.connect(a.self());
  for (int i = 0; i < 50; ++i) {
    b.post_receive();
    b.adapter().request_notification(b.cq(), NotifyOn::kAnyCompletion);
    a.post(SendOp::kSend, 100);
    pollfd channel{.fd = target.queue().fd(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&channel, 1, kPatienceMs), 1);
    EXPECT_EQ(target.queue().pop(), 1);
    EXPECT_EQ(b.wait_for_completion().status, WQEStatus::kSuccess);
    EXPECT_EQ(a.wait_for_completion().status, WQEStatus::kSuccess);
  }
}

// A thread that looks calls cancellation points while it holds the lock of the adapter.
TEST(AdapterEventTest, AThreadThatLooksIsNotCancelled) {
  QueueTarget target;
  RCEndpoint a(open("127.0.0.81")), b(open("127.0.0.82"), &target);
  a.connect(b.self());
  b.connect(a.self());
  int while_looking = -1, after = -1;
  for (int i = 0; i < 1000 && while_looking < 0; ++i) {  // it looks only soon after a receipt
    b.post_receive();
    b.adapter().request_notification(b.cq(), NotifyOn::kAnyCompletion);
    a.post(SendOp::kSend, 100);
    EXPECT_EQ(target.queue().pop(), 1);
    EventWait wait(b.adapter());
    ASSERT_TRUE(wait.is_for_link());
    wait.receive([&] {
      pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &while_looking);
      return true;
    });
    wait.end();
    EXPECT_EQ(b.wait_for_completion().status, WQEStatus::kSuccess);
    EXPECT_EQ(a.wait_for_completion().status, WQEStatus::kSuccess);
  }
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &after);
#ifdef __SANITIZE_THREAD__
  if (while_looking < 0) GTEST_SKIP() << "with ThreadSanitizer the receipt was never so recent";
#endif
  EXPECT_EQ(while_looking, PTHREAD_CANCEL_DISABLE);
  EXPECT_EQ(after, PTHREAD_CANCEL_ENABLE);
}

TEST(AdapterEventTest, RetransmissionAndItsEndNeedNoPolls) {
  QueueTarget target;
  RCEndpoint a(open("127.0.0.81"), &target);
  a.connect({.gid = *GID::parse("127.0.0.89"), .qpn = 0x4001, .r_key = 1, .address = 0}, 2);
  a.adapter().request_notification(a.cq(), NotifyOn::kAnyCompletion);
  a.post(SendOp::kRDMAWrite, 100);
  pollfd channel{.fd = target.queue().fd(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&channel, 1, kPatienceMs), 1);
  EXPECT_EQ(a.wait_for_completion().status, WQEStatus::kRetryExceeded);
}

// Also after traffic, when its timers are over.
TEST_F(AdapterTest, AnIdleAdapterWakesNobody) {
  a_.post(SendOp::kRDMAWrite, 1000);
  EXPECT_EQ(a_.wait_for_completion().status, WQEStatus::kSuccess);
  const auto* live = dynamic_cast<const LiveAdapter*>(&a_.adapter());
  ASSERT_NE(live, nullptr);
  u64 before = 0;
  bool idle = false;
  for (int i = 0; i < 50 && !idle; ++i) {  // the backstop and the ACK timer are heard once more
    before = live->helper_wakeups();
    ::poll(nullptr, 0, 200);
    idle = live->helper_wakeups() == before;
  }
  EXPECT_TRUE(idle);
}

// --- processes

bool is_port_free(const char* ip) {
  const Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const SocketAddress at(*GID::parse(ip), kRoCEv2Port, 0);
  return ::bind(socket.get(), at.data(), at.size()) == 0;
}

// A reply that would take the acknowledgement along never comes, since the QP is to be destroyed.
TEST(AdapterHoldingTest, AHeldAcknowledgementLeavesWithWhatHasArrived) {
  ::setenv("VERBENA_LOCAL", "off", 1);
  RCEndpoint a(open("127.0.0.83")), b(open("127.0.0.84"));
  ::unsetenv("VERBENA_LOCAL");
  a.connect(b.self());
  b.connect(a.self());
  const auto send = [](RCEndpoint& from, RCEndpoint& to) {
    to.post_receive();
    from.post(SendOp::kSend, 8);
    EXPECT_EQ(to.wait_for_completion().status, WQEStatus::kSuccess);
  };
  const auto bursts = [&b] {
    const Adapter::Session session = b.adapter().enter();
    return static_cast<const LiveAdapter&>(b.adapter()).link_counters().sent_bursts;
  };
  for (int i = 0; i < 10; ++i) {
    for (int turn = 0; turn < 20; ++turn) {  // until each expects the other's reply
      send(a, b);
      send(b, a);
      EXPECT_EQ(a.wait_for_completion().status, WQEStatus::kSuccess);
      EXPECT_EQ(b.wait_for_completion().status, WQEStatus::kSuccess);
    }
    send(a, b);
    b.adapter().receive_arrived();
    const u64 sent = bursts();
    EXPECT_EQ(a.wait_for_completion().status, WQEStatus::kSuccess);
    ::poll(nullptr, 0, 3);  // the helper sends what is held for 1 ms
    EXPECT_EQ(bursts(), sent);
  }
}

TEST(AdapterProcessTest, AForkedChildDoesNotHoldThePort) {
  std::array<int, 2> hold{};
  ASSERT_EQ(::pipe(hold.data()), 0);
  std::shared_ptr<Adapter> adapter = open("127.0.0.83");
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    adapter.reset();  // as if it closed the device: nothing must happen to the parent's
    (void)!::write(hold[1], "", 1);
    ::poll(nullptr, 0, -1);
  }
  char ready = 1;
  ASSERT_EQ(::read(hold[0], &ready, 1), 1);
  EXPECT_FALSE(is_port_free("127.0.0.83"));  // ours
  adapter.reset();
  EXPECT_TRUE(is_port_free("127.0.0.83"));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST(AdapterProcessTest, ExitWithoutCloseLeavesThePort) {
  std::fflush(nullptr);  // or the child prints it again
  const pid_t child = ::fork();
  if (child == 0) {
    static auto* const never_closed = new std::shared_ptr<Adapter>(open("127.0.0.84"));
    std::exit(*never_closed != nullptr ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(is_port_free("127.0.0.84"));
  for (const Membership& member : Directory::open()->read().members)
    EXPECT_NE(member.address, *GID::parse("127.0.0.84"));
}

// One side of a conversation between two processes on the same address.
void talk(int read_fd, int write_fd) {
  RCEndpoint endpoint(open("127.0.0.85"));
  RCEndpoint::Peer peer, self = endpoint.self();
  const auto exchange = [&] {
    ASSERT_EQ(::write(write_fd, &self, sizeof(self)), static_cast<ssize_t>(sizeof(self)));
    ASSERT_EQ(::read(read_fd, &peer, sizeof(peer)), static_cast<ssize_t>(sizeof(peer)));
  };
  exchange();
  endpoint.connect(peer);
  for (int i = 0; i < 32; ++i) endpoint.post_receive();
  exchange();  // both are ready
  int sent = 0, received = 0;
  constexpr int kMessages = 200;
  endpoint.post(SendOp::kSend, 5000);
  while (sent < kMessages || received < kMessages) {
    const CQE cqe = endpoint.wait_for_completion();
    ASSERT_EQ(cqe.status, WQEStatus::kSuccess);
    if (cqe.op == CompletionOp::kReceive) {
      ++received;
      endpoint.post_receive();
    } else if (++sent < kMessages) {
      endpoint.post(SendOp::kSend, 5000);
    }
  }
  exchange();  // neither leaves before the other has all
}

TEST(AdapterProcessTest, TwoProcessesOnOneAddress) {
  std::array<int, 2> to_child{}, to_parent{};
  ASSERT_EQ(::pipe(to_child.data()), 0);
  ASSERT_EQ(::pipe(to_parent.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    talk(to_child[0], to_parent[1]);
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  talk(to_parent[0], to_child[1]);
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace verbena::host
