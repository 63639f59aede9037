// `verbena nvmf target --threads` under hosts that come and go. The thread sanitizer checks what
// the target's threads share.
#include "nvmf_program/commands.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "base/prng.h"
#include "nvmf_program/host_session.h"

namespace verbena::nvmf_program {
namespace {

constexpr const char* kAddress = "127.0.46.1";
constexpr u16 kPort = 4423;
constexpr const char* kNQN = "nqn.2026-01.test:threads";
constexpr u64 kBytes = 4 << 20;
constexpr u32 kHosts = 3, kVisits = 4, kDepth = 32, kRounds = 8;
constexpr u32 kBlockBytes = 512, kBlocks = 40;  // 20 KiB do not fit into a capsule

// Sends the signal to the thread of serve(), which reads it from its descriptor.
class RunningTarget {
 public:
  explicit RunningTarget(TargetOptions options)
      : options_(std::move(options)), thread_([this] { served_ = serve(options_); }) {}
  [[nodiscard]] Expected<void> stop() {
    pthread_kill(thread_.native_handle(), SIGTERM);
    thread_.join();
    return served_;
  }

 private:
  const StopDescriptor blocks_signals_{};
  const TargetOptions options_;
  Expected<void> served_{};
  std::thread thread_;
};

class TemporaryFile {
 public:
  TemporaryFile() {
    const int fd = mkstemp(name_.data());
    EXPECT_EQ(ftruncate(fd, kBytes), 0);
    close(fd);
  }
  ~TemporaryFile() { unlink(name_.c_str()); }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  std::string name_ = "/tmp/verbena-nvmf-XXXXXX";
};

// One host's blocks of one namespace: it writes them, and reads what it has written.
class Visit {
 public:
  Visit(HostSession& session, u32 host, u32 nsid, u64 seed)
      : session_(session),
        nsid_(nsid),
        first_(u64{host} * kDepth * kBlocks),
        prng_(seed),
        memory_(*session.node().allocate(2 * kHalf, application::Content::kBytes,
                                         application::Access::kRemoteReadWrite)) {}

  void run() {
    for (u32 round = 0; round < kRounds; ++round) {
      for (u8& byte : memory_.bytes.first(kHalf)) byte = static_cast<u8>(prng_.below(256));
      execute(nvme::IOOpcode::kWrite, 0);
      execute(nvme::IOOpcode::kRead, kHalf);
      for (u32 slot = 0; slot < kDepth; ++slot)
        EXPECT_TRUE(std::ranges::equal(bytes_of(slot, 0), bytes_of(slot, kHalf)));
    }
  }
  // All are outstanding when the session ends.
  void submit(nvme::IOOpcode opcode, u64 at) {
    for (u32 slot = 0; slot < kDepth; ++slot) {
      const u32 blocks = blocks_of(slot);
      session_.initiator().submit(
          {.opcode = opcode,
           .nsid = nsid_,
           .lba = first_ + slot * kBlocks,
           .blocks = blocks,
           .data = slice_of(memory_, at + u64{slot} * kSlotBytes, blocks * kBlockBytes),
           .tag = slot});
    }
  }

 private:
  static constexpr u32 kSlotBytes = kBlocks * kBlockBytes, kHalf = kDepth * kSlotBytes;

  static u32 blocks_of(u32 slot) { return slot % 2 == 0 ? kBlocks : 1; }  // 1: in the capsule
  [[nodiscard]] std::span<const u8> bytes_of(u32 slot, u64 at) const {
    return memory_.bytes.subspan(at + u64{slot} * kSlotBytes, blocks_of(slot) * kBlockBytes);
  }

  void execute(nvme::IOOpcode opcode, u64 at) {
    submit(opcode, at);
    u32 ended = 0;
    const bool is_done = session_.run_until([&] {
      for (nvmf::Initiator::Result result; session_.initiator().poll_result(result); ++ended)
        EXPECT_EQ(result.status, nvme::Status::kSuccess);
      return ended == kDepth;
    });
    EXPECT_TRUE(is_done) << session_.initiator().failure();
  }

  HostSession& session_;
  const u32 nsid_;
  const u64 first_;  // block
  PRNG prng_;
  const application::Region memory_;
};

HostOptions host_options(u32 host) {
  HostOptions options;
  options.target = *application::parse_address(kAddress, kPort);
  options.nqn = kNQN;
  options.host_nqn = "nqn.2026-01.test:host" + std::to_string(host);
  options.io_queues = 4;
  options.reconnect_delay_s = 0.1;
  options.loss_timeout_s = 30;  // the target does not listen at first
  return options;
}

void read_logs(HostSession& session) {
  constexpr u8 kErrors = 1, kSMART = 2;
  const auto page = session.node().allocate(512, application::Content::kBytes,
                                            application::Access::kRemoteReadWrite);
  for (const u8 log : {kErrors, kSMART})
    EXPECT_TRUE(session.get_log(log, 0, slice_of(*page, 0, 512)).has_value());
}

// Every second visit ends without a word, and with commands outstanding.
void visit_often(u32 host) {
  for (u32 visit = 0; visit < kVisits; ++visit) {
    const auto session = HostSession::open(host_options(host), nullptr);
    ASSERT_TRUE(session.has_value()) << session.error();
    Visit blocks(**session, host, 1 + visit % 2, 1 + host * kVisits + visit);
    blocks.run();
    read_logs(**session);
    if (visit % 2 == 0) {
      (*session)->close();
    } else {
      blocks.submit(nvme::IOOpcode::kRead, 0);
      (void)(*session)->step(Duration());
    }
  }
}

TEST(Serve, ThreadsServeHostsThatComeAndGo) {
  setenv("VERBENA_ADDRESS", kAddress, 1);
  const TemporaryFile file;
  SubsystemOptions subsystem;
  subsystem.nqn = kNQN;
  subsystem.namespaces = {*read_namespace("memory:4M"), *read_namespace(file.name())};
  TargetOptions options;
  options.subsystems.push_back(subsystem);
  options.listen = *application::parse_address(kAddress, kPort);
  options.threads = 4;
  RunningTarget target(options);
  std::vector<std::thread> hosts;
  for (u32 host = 0; host < kHosts; ++host) hosts.emplace_back(visit_often, host);
  for (std::thread& host : hosts) host.join();
  const auto served = target.stop();
  EXPECT_TRUE(served.has_value()) << served.error();
}

}  // namespace
}  // namespace verbena::nvmf_program
