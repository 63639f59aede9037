// NVMe over Fabrics: our target and our initiator, on both drivers.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "application/shared_node.h"
#include "nvmf/authentication/cryptography_for_test.h"
#include "nvmf/initiator.h"
#include "nvmf/memory_store.h"
#include "nvmf/target.h"
#include "verbs/two_nodes_for_test.h"

namespace verbena {
namespace {

using nvme::IOOpcode;
using nvme::Status;
using nvmf::DataSlice;
using nvmf::Initiator;
using nvmf::InitiatorConfig;

constexpr u16 kNVMePort = 4420;
constexpr std::string_view kSubsystemNQN = "nqn.2026-01.test:one";
constexpr std::string_view kHostNQN = "nqn.2026-01.test:host";
constexpr u64 kBytes = 1 << 20;

class NVMf : public testing::TestWithParam<std::unique_ptr<test::TwoNodes> (*)()> {
 protected:
  NVMf()
      : nodes_(GetParam()()),
        store_(*nodes_->server().allocate(kBytes, application::Content::kBytes,
                                          application::Access::kLocal),
               9),
        small_store_(*nodes_->server().allocate(8192, application::Content::kBytes,
                                                application::Access::kLocal),
                     12),
        subsystem_{std::string(kSubsystemNQN)},
        other_{"nqn.2026-01.test:two"},
        target_(nodes_->server(), target_config()),
        memory_(*nodes_->client().allocate(kBytes, application::Content::kBytes,
                                           application::Access::kRemoteReadWrite)) {
    subsystem_.add_namespace(store_);
    subsystem_.add_namespace(small_store_);
    other_.add_namespace(small_store_);
    other_.allow_host("nqn.2026-01.test:friend");
    target_.add_subsystem(subsystem_);
    target_.add_subsystem(other_);
    EXPECT_EQ(target_.start(), verbena::Status::kOk);
  }

  nvmf::TargetConfig target_config() {
    nvmf::TargetConfig config;
    config.listen = nodes_->server_address(kNVMePort);
    config.address_text = "here";
    config.cryptography = &cryptography_;
    config.small_buffers = 8;
    config.large_buffers = 2;
    return config;
  }
  InitiatorConfig config(std::string_view nqn = kSubsystemNQN) {
    InitiatorConfig config;
    config.target = nodes_->server_address(kNVMePort);
    config.subsystem_nqn = nqn;
    config.host_nqn = kHostNQN;
    config.host_id[0] = 1;
    config.io_queues = 2;
    config.queue_entries = 16;
    config.loss_timeout = Duration();
    return config;
  }
  void run(Initiator& initiator, const std::function<bool()>& is_over) {
    nodes_->run(target_, initiator, is_over);
  }
  void connect(Initiator& initiator) {
    initiator.start();
    run(initiator, [&] {
      return initiator.state() == Initiator::State::kLive ||
             initiator.state() == Initiator::State::kFailed;
    });
  }
  DataSlice slice(u64 offset, u32 bytes) const {
    return {memory_.address + offset, bytes, memory_.l_key, memory_.r_key};
  }
  Initiator::Result result(Initiator& initiator) {
    Initiator::Result result;
    bool has = false;
    run(initiator, [&] { return has || (has = initiator.poll_result(result)); });
    return result;
  }
  Status execute(Initiator& initiator, const Initiator::Request& request) {
    initiator.submit(request);
    return result(initiator).status;
  }
  void fill(u64 offset, u64 bytes, u8 first) {
    for (u64 i = 0; i < bytes; ++i)
      memory_.bytes[offset + i] = static_cast<u8>(first + i * 7 + i / 256);
  }
  [[nodiscard]] bool are_equal(u64 a, u64 b, u64 bytes) const {
    return std::memcmp(memory_.bytes.data() + a, memory_.bytes.data() + b, bytes) == 0;
  }

  nvmf::test::ToyCryptography cryptography_;
  std::unique_ptr<test::TwoNodes> nodes_;
  nvmf::MemoryStore store_, small_store_;
  nvmf::Subsystem subsystem_, other_;
  nvmf::Target target_;
  application::Region memory_;
};

TEST_P(NVMf, ConnectsAndLearnsTheNamespaces) {
  Initiator initiator(nodes_->client(), config());
  connect(initiator);
  ASSERT_EQ(initiator.state(), Initiator::State::kLive) << initiator.failure();
  ASSERT_EQ(initiator.namespaces().size(), 2u);
  EXPECT_EQ(initiator.namespaces().at(1).blocks, kBytes / 512);
  EXPECT_EQ(initiator.namespaces().at(2).block_log2, 12);
  EXPECT_EQ(initiator.controller().subsystem_nqn, kSubsystemNQN);
  EXPECT_EQ(target_.queues(), 3u);
  initiator.disconnect();
  run(initiator, [&] { return target_.queues() == 0; });
  EXPECT_EQ(target_.controllers(), 0u);
}

TEST_P(NVMf, DataComesBackThroughCapsulesAndKeys) {
  Initiator initiator(nodes_->client(), config());
  connect(initiator);
  for (const u32 blocks : {1u, 8u, 16u, 64u, 255u}) {  // 8 KiB fit into a capsule
    const u32 bytes = blocks * 512;
    fill(0, bytes, static_cast<u8>(blocks));
    EXPECT_EQ(
        execute(
            initiator,
            {.opcode = IOOpcode::kWrite, .lba = blocks, .blocks = blocks, .data = slice(0, bytes)}),
        Status::kSuccess);
    EXPECT_EQ(execute(initiator, {.opcode = IOOpcode::kRead,
                                  .lba = blocks,
                                  .blocks = blocks,
                                  .data = slice(kBytes / 2, bytes)}),
              Status::kSuccess);
    EXPECT_TRUE(are_equal(0, kBytes / 2, bytes)) << blocks;
  }
  EXPECT_EQ(execute(initiator, {.opcode = IOOpcode::kFlush}), Status::kSuccess);
  EXPECT_EQ(execute(initiator, {.opcode = IOOpcode::kFlush, .nsid = nvme::kAllNamespaces}),
            Status::kSuccess);
}

TEST_P(NVMf, CompareWriteZeroesAndDeallocate) {
  Initiator initiator(nodes_->client(), config());
  connect(initiator);
  fill(0, 65536, 3);
  const Initiator::Request write{
      .opcode = IOOpcode::kWrite, .lba = 0, .blocks = 128, .data = slice(0, 65536)};
  EXPECT_EQ(execute(initiator, write), Status::kSuccess);
  Initiator::Request compare = write;
  compare.opcode = IOOpcode::kCompare;
  EXPECT_EQ(execute(initiator, compare), Status::kSuccess);
  memory_.bytes[65535] ^= 1;
  EXPECT_EQ(execute(initiator, compare), Status::kCompareFailure);
  EXPECT_EQ(execute(initiator, {.opcode = IOOpcode::kWriteZeroes, .lba = 2, .blocks = 3}),
            Status::kSuccess);
  std::memset(memory_.bytes.data(), 0, 16);  // one range: blocks 10 and 11
  memory_.bytes[4] = 2;
  memory_.bytes[8] = 10;
  EXPECT_EQ(execute(initiator,
                    {.opcode = IOOpcode::kDatasetManagement, .data = slice(0, 16), .cdw11 = 4}),
            Status::kSuccess);
  EXPECT_EQ(
      execute(initiator,
              {.opcode = IOOpcode::kRead, .lba = 0, .blocks = 16, .data = slice(kBytes / 2, 8192)}),
      Status::kSuccess);
  for (u32 block = 0; block < 16; ++block) {
    const auto begin = memory_.bytes.begin() + kBytes / 2 + block * 512;
    const bool is_zero = std::all_of(begin, begin + 512, [](u8 b) { return b == 0; });
    EXPECT_EQ(is_zero, (block >= 2 && block < 5) || block == 10 || block == 11) << block;
  }
}

TEST_P(NVMf, ErrorsAreStatusCodesAndTheQueueGoesOn) {
  Initiator initiator(nodes_->client(), config());
  connect(initiator);
  const auto read = [&](u32 nsid, u64 lba, u32 blocks, u32 bytes) {
    return execute(initiator,
                   {.nsid = nsid, .lba = lba, .blocks = blocks, .data = slice(0, bytes)});
  };
  EXPECT_EQ(read(1, kBytes / 512, 1, 512), Status::kLBAOutOfRange);
  EXPECT_EQ(read(1, kBytes / 512 - 1, 2, 1024), Status::kLBAOutOfRange);
  EXPECT_EQ(read(1, ~u64{0}, 1, 512), Status::kLBAOutOfRange);
  EXPECT_EQ(read(3, 0, 1, 512), Status::kInvalidNamespace);
  EXPECT_EQ(read(0, 0, 1, 512), Status::kInvalidNamespace);
  EXPECT_EQ(read(1, 0, 2, 512), Status::kDataSGLLengthInvalid);
  EXPECT_EQ(read(1, 0, 1, 1024), Status::kDataSGLLengthInvalid);
  EXPECT_EQ(execute(initiator, {.opcode = static_cast<IOOpcode>(0x7d), .data = slice(0, 512)}),
            Status::kInvalidOpcode);
  EXPECT_EQ(read(1, 0, 1, 512), Status::kSuccess);
  EXPECT_EQ(target_.counters().errors, 8u);
}

TEST_P(NVMf, ManyCommandsOnSeveralQueues) {
  Initiator initiator(nodes_->client(), config());
  connect(initiator);
  for (u32 i = 0; i < 128; ++i) {
    fill(i * 4096, 4096, static_cast<u8>(i));
    initiator.submit({.opcode = IOOpcode::kWrite,
                      .lba = i * 8,
                      .blocks = 8,
                      .data = slice(i * 4096, 4096),
                      .tag = i});
  }
  std::vector<u64> tags;
  run(initiator, [&] {
    for (Initiator::Result r; initiator.poll_result(r); tags.push_back(r.tag))
      EXPECT_EQ(r.status, Status::kSuccess);
    return tags.size() == 128;
  });
  std::ranges::sort(tags);
  for (u64 i = 0; i < tags.size(); ++i) EXPECT_EQ(tags[i], i);
  EXPECT_EQ(std::memcmp(memory_.bytes.data(), store_.memory()->bytes.data(), 128 * 4096), 0);
}

TEST_P(NVMf, AHostThatIsNotAllowedIsRefused) {
  Initiator stranger(nodes_->client(), config(other_.nqn()));
  connect(stranger);
  EXPECT_EQ(stranger.state(), Initiator::State::kFailed);
  EXPECT_NE(stranger.failure().find("0184"), std::string::npos) << stranger.failure();
}

TEST_P(NVMf, HostAndControllerAuthenticateEachOther) {
  const nvmf::CHAPKeys keys{{.key = std::vector<u8>(32, 1)},
                            nvmf::AuthSecret{.key = std::vector<u8>(48, 2)}};
  subsystem_.require_authentication(std::string(kHostNQN), keys);
  Initiator without(nodes_->client(), config());
  connect(without);
  EXPECT_EQ(without.failure(), "the target requires authentication, and this host has no key");
  InitiatorConfig with = config();
  with.cryptography = &cryptography_;
  with.keys = keys;
  with.keys->host.key[0] = 9;
  Initiator wrong(nodes_->client(), with);
  connect(wrong);
  EXPECT_EQ(wrong.failure(),
            "authentication failed: the target refuses: the key is not the right one");
  with.keys = keys;
  Initiator initiator(nodes_->client(), with);
  connect(initiator);
  ASSERT_EQ(initiator.state(), Initiator::State::kLive) << initiator.failure();
  EXPECT_EQ(execute(initiator, {.blocks = 8, .data = slice(0, 4096)}), Status::kSuccess);
}

TEST_P(NVMf, AHostWithAControllersKeyTrustsNoOtherTarget) {
  InitiatorConfig config = this->config();
  config.cryptography = &cryptography_;
  config.keys = nvmf::CHAPKeys{{.key = std::vector<u8>(32, 1)},
                               nvmf::AuthSecret{.key = std::vector<u8>(32, 2)}};
  Initiator initiator(nodes_->client(), config);
  connect(initiator);
  EXPECT_EQ(initiator.state(), Initiator::State::kFailed);
  EXPECT_EQ(initiator.failure(), "an authentication command failed with status 0x0001");
}

TEST_P(NVMf, AnUnknownSubsystemIsRefused) {
  Initiator lost(nodes_->client(), config("nqn.2026-01.test:absent"));
  connect(lost);
  EXPECT_EQ(lost.state(), Initiator::State::kFailed);
  EXPECT_NE(lost.failure().find("0182"), std::string::npos) << lost.failure();
}

TEST_P(NVMf, DiscoveryListsTheSubsystemsOfTheHost) {
  Initiator initiator(nodes_->client(), config(nvme::kDiscoveryNQN));
  connect(initiator);
  ASSERT_EQ(initiator.state(), Initiator::State::kLive) << initiator.failure();
  nvme::Command command{.opcode = static_cast<u8>(nvme::AdminOpcode::kGetLogPage)};
  command.cdw[0] = 0x70 | (4096 / 4 - 1) << 16;
  initiator.submit_admin(command, slice(0, 4096), 1);
  EXPECT_EQ(result(initiator).status, Status::kSuccess);
  const auto bytes = memory_.bytes;
  EXPECT_EQ(nvme::DiscoveryHeader::decode(bytes.first<1024>()).records, 1u);
  const auto entry = nvme::DiscoveryEntry::decode(bytes.subspan<1024, 1024>());
  EXPECT_EQ(entry.subsystem_nqn, kSubsystemNQN);
  EXPECT_EQ(entry.address, "here");
  EXPECT_EQ(entry.service, "4420");
}

TEST_P(NVMf, AHostWithoutKeepAlivesLosesItsController) {
  InitiatorConfig silent = config();
  silent.keep_alive = ms(200);
  Initiator initiator(nodes_->client(), silent);
  connect(initiator);
  ASSERT_EQ(target_.controllers(), 1u);
  // The target runs on; the host's program does not.
  struct Nothing final : application::Program {
    void on_ready() override {}
  } nothing;
  nodes_->run(target_, nothing, [&] { return target_.controllers() == 0; });
  EXPECT_EQ(target_.counters().keep_alive_expirations, 1u);
}

TEST_P(NVMf, KeepAlivesKeepAnIdleController) {
  InitiatorConfig idle = config();
  idle.keep_alive = ms(200);
  Initiator initiator(nodes_->client(), idle);
  connect(initiator);
  const Time end = nodes_->server().now() + ms(900);
  run(initiator, [&] { return std::max(nodes_->server().now(), nodes_->client().now()) >= end; });
  EXPECT_EQ(target_.controllers(), 1u);
  EXPECT_EQ(target_.counters().keep_alive_expirations, 0u);
}

// Two hosts on one node.
class TwoHosts final : public application::Program {
 public:
  TwoHosts(application::Node& node, const InitiatorConfig& config)
      : shared(node), one(shared.add_view(), config), two(shared.add_view(), config) {}
  void on_ready() override {
    shared.dispatch();
    one.on_ready();
    two.on_ready();
  }
  application::SharedNode shared;
  Initiator one, two;
};

TEST_P(NVMf, AKeyThatIsNotTheHostsEndsItsAssociationAndNoOther) {
  InitiatorConfig config = this->config();
  config.io_queues = 1;
  TwoHosts hosts(nodes_->client(), config);
  hosts.one.start();
  hosts.two.start();
  nodes_->run(target_, hosts, [&] {
    return hosts.one.state() == Initiator::State::kLive &&
           hosts.two.state() == Initiator::State::kLive;
  });
  DataSlice foreign = slice(0, 4096);
  foreign.r_key ^= 0x5a5a5a;
  hosts.one.submit({.blocks = 8, .data = foreign});
  nodes_->run(target_, hosts, [&] { return hosts.one.state() == Initiator::State::kFailed; });
  Initiator::Result result;
  ASSERT_TRUE(hosts.one.poll_result(result));
  EXPECT_EQ(result.status, Status::kTransientTransportError);
  hosts.two.submit({.blocks = 8, .data = slice(4096, 4096)});
  bool has = false;
  nodes_->run(target_, hosts, [&] { return has || (has = hosts.two.poll_result(result)); });
  EXPECT_EQ(result.status, Status::kSuccess);
  EXPECT_EQ(hosts.two.state(), Initiator::State::kLive);
}

INSTANTIATE_TEST_SUITE_P(Drivers, NVMf, testing::Values(test::simulated_pair, test::live_pair),
                         test::driver_name);

}  // namespace
}  // namespace verbena
