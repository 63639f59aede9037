#include "nvmf/target.h"

#include <gtest/gtest.h>

#include "nvmf/authentication/cryptography_for_test.h"
#include "nvmf/authentication/host_authentication.h"
#include "nvmf/memory_store.h"
#include "nvmf/scripted_node_for_test.h"

namespace verbena::nvmf {
namespace {

using nvme::Command;
using nvme::Completion;
using nvme::Status;

constexpr u64 kDiskBytes = 64 * 1024;

class TargetTest : public testing::Test {
 protected:
  TargetTest()
      : store_(
            *node_.allocate(kDiskBytes, application::Content::kBytes, application::Access::kLocal),
            9),
        subsystem_("nqn.a"),
        target_(node_, config()) {
    subsystem_.add_namespace(store_);
    target_.add_subsystem(subsystem_);
    EXPECT_EQ(target_.start(), verbena::Status::kOk);
  }
  TargetConfig config() {
    TargetConfig config;
    config.cryptography = &cryptography_;
    config.small_buffers = config.large_buffers = 4;
    return config;
  }
  application::ConnectionId request(u16 qid, u16 hsqsize = 15, u16 hrqsize = 16) {
    const auto id = node_.request(
        nvme::RDMARequestData{.qid = qid, .receive_queue_size = hrqsize, .send_queue_size = hsqsize}
            .encode());
    target_.on_ready();
    return id;
  }
  // The response to it; nullopt: none came.
  std::optional<Completion> send(application::ConnectionId id, const Command& command,
                                 std::span<const u8> data = {}) {
    std::vector<u8> capsule(Command::kSize);
    command.encode(std::span<u8, Command::kSize>(capsule.data(), Command::kSize));
    capsule.insert(capsule.end(), data.begin(), data.end());
    node_.sent.clear();
    EXPECT_TRUE(node_.deliver(id, capsule));
    target_.on_ready();
    if (node_.sent.empty() || node_.sent.back().bytes.size() != Completion::kSize)
      return std::nullopt;
    return Completion::decode(
        std::span<const u8, Completion::kSize>(node_.sent.back().bytes.data(), Completion::kSize));
  }
  Status status(application::ConnectionId id, const Command& command,
                std::span<const u8> data = {}) {
    const auto completion = send(id, command, data);
    EXPECT_TRUE(completion.has_value());
    return completion ? completion->code() : Status::kInternalError;
  }
  Status connect(application::ConnectionId id, u16 qid, u16 controller, u32 keep_alive_ms = 0,
                 std::string host = "nqn.h") {
    Command command{.sgl = nvme::SGLDescriptor::in_capsule(nvme::ConnectData::kSize)};
    nvme::ConnectCommand{.qid = qid, .sq_size = 15, .keep_alive_ms = keep_alive_ms}.put_into(
        command);
    std::array<u8, nvme::ConnectData::kSize> data{};
    nvme::ConnectData{.controller_id = controller, .subsystem_nqn = "nqn.a", .host_nqn = host}
        .encode(data);
    return status(id, command, data);
  }
  application::ConnectionId live_admin(u32 keep_alive_ms = 0) {
    const auto id = request(0);
    EXPECT_EQ(connect(id, 0, nvme::kDynamicController, keep_alive_ms), Status::kSuccess);
    Command enable{.opcode = nvme::kFabricsOpcode};
    enable.cdw[1] = static_cast<u32>(nvme::Property::kCC);
    enable.cdw[2] = nvme::kCCFabrics | nvme::kCCEnable;
    EXPECT_EQ(status(id, enable), Status::kSuccess);
    return id;
  }
  application::ConnectionId live_io() {
    const auto id = request(1);
    EXPECT_EQ(connect(id, 1, 1), Status::kSuccess);
    return id;
  }
  static Command read(u32 bytes) {
    Command command{.opcode = 2, .nsid = 1, .sgl = nvme::SGLDescriptor::keyed(0x1000, bytes, 7)};
    command.cdw[2] = bytes / 512 - 1;
    return command;
  }

  // Returns what the target posts for so many READs that arrive together: WRITEs and SENDs.
  std::string order_of_reads(application::ConnectionId id, u32 reads, u32 bytes) {
    std::array<u8, Command::kSize> capsule{};
    node_.sent.clear();
    for (u32 i = 0; i < reads; ++i) {
      Command command = read(bytes);
      command.cid = static_cast<u16>(i);
      command.encode(capsule);
      EXPECT_TRUE(node_.deliver(id, capsule));
    }
    target_.on_ready();
    std::string order;
    u16 next = 0;
    for (const test::ScriptedNode::Sent& sent : node_.sent) {
      order += sent.operation == application::Operation::kSend ? 'S' : 'W';
      if (sent.operation != application::Operation::kSend) continue;
      const auto entry =
          std::span<const u8, Completion::kSize>(sent.bytes.data(), Completion::kSize);
      EXPECT_EQ(Completion::decode(entry).cid, next++);
    }
    return order;
  }

  test::ToyCryptography cryptography_;
  test::ScriptedNode node_;
  MemoryStore store_;
  Subsystem subsystem_;
  Target target_;
};

TEST_F(TargetTest, QueueSizesThatLieAreRejected) {
  for (const auto& [qid, hsqsize, hrqsize] : {std::array<u16, 3>{0, 0, 16},
                                              {0, 32, 16},
                                              {1, 128, 16},
                                              {1, 15, 0},
                                              {1, 15, 129},
                                              {17, 15, 16},
                                              {0, 0xffff, 0xffff}}) {
    node_.rejected.clear();
    (void)request(qid, hsqsize, hrqsize);
    EXPECT_EQ(node_.rejected.size(), 1u) << qid << " " << hsqsize << " " << hrqsize;
  }
  (void)node_.request(std::array<u8, 31>{});
  target_.on_ready();
  EXPECT_EQ(node_.rejected.size(), 2u);
  EXPECT_EQ(target_.counters().refused_connections, 8u);
}

TEST_F(TargetTest, CommandsBeforeConnectAreOutOfSequence) {
  const auto admin = request(0);
  EXPECT_EQ(status(admin, {.opcode = 6}), Status::kCommandSequenceError);
  const auto io = request(1);
  EXPECT_EQ(status(io, read(512)), Status::kCommandSequenceError);
  EXPECT_EQ(connect(admin, 0, nvme::kDynamicController), Status::kSuccess);
  EXPECT_EQ(status(admin, {.opcode = 6}), Status::kCommandSequenceError);  // not enabled
  EXPECT_EQ(connect(io, 1, 1), Status::kCommandSequenceError);
}

TEST_F(TargetTest, ConnectIsForOneControllerAndOneTime) {
  const auto admin = live_admin();
  EXPECT_EQ(connect(admin, 0, nvme::kDynamicController), Status::kCommandSequenceError);
  const auto stray = request(1);
  EXPECT_EQ(connect(stray, 1, 99), Status::kConnectInvalidParameters);
  EXPECT_EQ(connect(stray, 2, 1), Status::kConnectInvalidParameters);  // REQ said queue 1
  (void)live_io();
  const auto twice = request(1);
  EXPECT_EQ(connect(twice, 1, 1), Status::kCommandSequenceError);
}

TEST_F(TargetTest, AShortCapsuleClosesTheConnection) {
  const auto admin = live_admin();
  node_.deliver(admin, std::array<u8, 63>{});
  target_.on_ready();
  EXPECT_FALSE(node_.is_open(admin));
  EXPECT_EQ(target_.controllers(), 0u);
}

TEST_F(TargetTest, AResponseInvalidatesTheKeyIfTheSGLSaysSo) {
  (void)live_admin();
  const auto io = live_io();
  Command command = read(1024);
  EXPECT_EQ(status(io, command), Status::kSuccess);
  EXPECT_EQ(node_.sent.back().invalidate, std::nullopt);
  command.sgl.subtype = nvme::SGLDescriptor::kSubtypeInvalidateKey;
  EXPECT_EQ(status(io, command), Status::kSuccess);
  EXPECT_EQ(node_.sent.back().invalidate, std::optional<u32>(7));
  ASSERT_EQ(node_.sent.size(), 2u);
  EXPECT_EQ(node_.sent[0].operation, application::Operation::kWrite);
  EXPECT_EQ(node_.sent[0].remote_address, 0x1000u);
  EXPECT_EQ(node_.sent[0].bytes.size(), 1024u);
}

TEST_F(TargetTest, ResponsesFollowTheDataOfSeveralCommands) {
  (void)live_admin();
  const auto io = live_io();
  EXPECT_EQ(order_of_reads(io, 3, 512), "WWWSSS");
  EXPECT_EQ(order_of_reads(io, 9, 512), "WWWWWWWWSSSSSSSSWS");  // the host need not wait longer
  EXPECT_EQ(order_of_reads(io, 3, 32 * 1024), "WWSSWS");
}

TEST_F(TargetTest, SQHDFollowsTheSubmissionQueue) {
  (void)live_admin();
  const auto io = live_io();
  u16 head = 1;  // after Connect
  for (int i = 0; i < 40; ++i) {
    head = static_cast<u16>((head + 1) % 16);
    const auto completion = send(io, read(512));
    ASSERT_TRUE(completion.has_value());
    EXPECT_EQ(completion->sq_head, head);
    EXPECT_EQ(completion->sq_id, 1);
  }
}

TEST_F(TargetTest, SGLsAreChecked) {
  (void)live_admin();
  const auto io = live_io();
  Command command = read(512);
  command.sgl = nvme::SGLDescriptor::in_capsule(512);  // nothing is returned in a capsule
  EXPECT_EQ(status(io, command), Status::kSGLDescriptorTypeInvalid);
  command = read(512);
  command.sgl.type = 2;
  EXPECT_EQ(status(io, command), Status::kSGLDescriptorTypeInvalid);
  Command write{.opcode = 1, .nsid = 1, .sgl = nvme::SGLDescriptor::in_capsule(512)};
  EXPECT_EQ(status(io, write, std::array<u8, 511>{}), Status::kSGLOffsetInvalid);
  write.sgl.address = 1;
  EXPECT_EQ(status(io, write, std::array<u8, 512>{}), Status::kSGLOffsetInvalid);
  write.sgl.address = ~u64{0};
  EXPECT_EQ(status(io, write, std::array<u8, 512>{}), Status::kSGLOffsetInvalid);
  write.sgl.address = 0;
  EXPECT_EQ(status(io, write, std::array<u8, 512>{}), Status::kSuccess);
}

TEST_F(TargetTest, AsyncEventsWaitForAChangeAndCanBeAborted) {
  const auto admin = live_admin();
  EXPECT_EQ(send(admin, {.opcode = 0x0c, .cid = 9}), std::nullopt);
  target_.on_namespace_changed(subsystem_, 1);
  ASSERT_FALSE(node_.sent.empty());
  auto event = Completion::decode(
      std::span<const u8, Completion::kSize>(node_.sent.back().bytes.data(), Completion::kSize));
  EXPECT_EQ(event.cid, 9);
  EXPECT_EQ(event.result, 2u | 4u << 16);  // notice, changed namespaces
  EXPECT_EQ(send(admin, {.opcode = 0x0c, .cid = 10}), std::nullopt);
  Command abort{.opcode = 0x08, .cid = 11};
  abort.cdw[0] = 10u << 16;
  EXPECT_EQ(status(admin, abort), Status::kSuccess);
  ASSERT_EQ(node_.sent.size(), 2u);
  event = Completion::decode(
      std::span<const u8, Completion::kSize>(node_.sent[0].bytes.data(), Completion::kSize));
  EXPECT_EQ(event.cid, 10);
  EXPECT_EQ(event.code(), Status::kAbortRequested);
}

TEST_F(TargetTest, AConnectionWithoutConnectEnds) {
  const auto idle = request(0);
  EXPECT_EQ(node_.alarm(), node_.time + sec(10));
  node_.ring_alarm();
  target_.on_ready();
  EXPECT_FALSE(node_.is_open(idle));
}

Command authentication_command(nvme::FabricsType type, u32 length) {
  Command command{.sgl = type == nvme::FabricsType::kAuthenticationSend
                             ? nvme::SGLDescriptor::in_capsule(length)
                             : nvme::SGLDescriptor::keyed(0x1000, length, 7)};
  nvme::AuthCommand{.length = length}.put_into(command, type);
  return command;
}

class TargetAuthenticationTest : public TargetTest {
 protected:
  TargetAuthenticationTest() {
    subsystem_.require_authentication("nqn.secret", keys_);
    subsystem_.allow_host("nqn.h");
  }
  // Runs the host's side with `keys`; true: it is authenticated.
  bool authenticate(application::ConnectionId id, const CHAPKeys& keys) {
    const CHAPPolicy policy;
    HostAuthentication host(cryptography_, keys, policy,
                            {.host_nqn = "nqn.secret", .subsystem_nqn = "nqn.a"}, 1);
    while (!host.is_over()) {
      const auto message = host.poll_message();
      const bool sends = !message.empty();
      const Command command =
          authentication_command(sends ? nvme::FabricsType::kAuthenticationSend
                                       : nvme::FabricsType::kAuthenticationReceive,
                                 sends ? static_cast<u32>(message.size()) : nvme::kMaxAuthMessage);
      EXPECT_EQ(status(id, command, message), Status::kSuccess);
      if (!sends) host.on_message(node_.sent.front().bytes);  // the RDMA WRITE
    }
    return host.is_authenticated();
  }
  Status property_get(application::ConnectionId id) {
    Command command{.opcode = nvme::kFabricsOpcode};
    command.nsid = static_cast<u32>(nvme::FabricsType::kPropertyGet);
    command.cdw[1] = static_cast<u32>(nvme::Property::kVS);
    return status(id, command);
  }

  CHAPKeys keys_{{.key = std::vector<u8>(32, 1)}, AuthSecret{.key = std::vector<u8>(32, 2)}};
};

TEST_F(TargetAuthenticationTest, CommandsBeforeItAreRefusedOnEachQueue) {
  const auto admin = request(0);
  EXPECT_EQ(connect(admin, 0, nvme::kDynamicController, 0, "nqn.secret"), Status::kSuccess);
  const auto response = Completion::decode(
      std::span<const u8, Completion::kSize>(node_.sent.back().bytes.data(), Completion::kSize));
  EXPECT_EQ(response.result, 1u | 1u << 17);  // CNTLID, ATR
  EXPECT_EQ(property_get(admin), Status::kAuthenticationRequired);
  EXPECT_EQ(status(admin, {.opcode = 6}), Status::kAuthenticationRequired);
  EXPECT_EQ(status(admin, {.opcode = 0x18}), Status::kAuthenticationRequired);
  EXPECT_TRUE(authenticate(admin, keys_));
  EXPECT_EQ(property_get(admin), Status::kSuccess);
  Command enable{.opcode = nvme::kFabricsOpcode};
  enable.cdw[1] = static_cast<u32>(nvme::Property::kCC);
  enable.cdw[2] = nvme::kCCFabrics | nvme::kCCEnable;
  EXPECT_EQ(status(admin, enable), Status::kSuccess);
  const auto io = request(1);
  EXPECT_EQ(connect(io, 1, 1, 0, "nqn.secret"), Status::kSuccess);
  EXPECT_EQ(status(io, read(512)), Status::kAuthenticationRequired);
  EXPECT_TRUE(authenticate(io, keys_));
  EXPECT_EQ(status(io, read(512)), Status::kSuccess);
}

TEST_F(TargetAuthenticationTest, AHostWithoutAKeyNeedsNone) {
  const auto admin = request(0);
  EXPECT_EQ(connect(admin, 0, nvme::kDynamicController), Status::kSuccess);
  EXPECT_EQ(property_get(admin), Status::kSuccess);
  EXPECT_EQ(status(admin, authentication_command(nvme::FabricsType::kAuthenticationReceive, 64)),
            Status::kInvalidOpcode);
  const auto stranger = request(0);
  EXPECT_EQ(connect(stranger, 0, nvme::kDynamicController, 0, "nqn.stranger"),
            Status::kConnectInvalidHost);
}

TEST_F(TargetAuthenticationTest, AWrongKeyEndsTheConnection) {
  const auto admin = request(0);
  EXPECT_EQ(connect(admin, 0, nvme::kDynamicController, 0, "nqn.secret"), Status::kSuccess);
  EXPECT_FALSE(authenticate(admin, {{.key = std::vector<u8>(32, 9)}, std::nullopt}));
  EXPECT_EQ(property_get(admin), Status::kAuthenticationRequired);
  EXPECT_EQ(node_.alarm(), node_.time + sec(1));
  node_.ring_alarm();
  target_.on_ready();
  EXPECT_FALSE(node_.is_open(admin));
  EXPECT_EQ(target_.controllers(), 0u);
}

TEST_F(TargetAuthenticationTest, AHostThatDoesNotAuthenticateLosesItsConnection) {
  const auto admin = request(0);
  EXPECT_EQ(connect(admin, 0, nvme::kDynamicController, 0, "nqn.secret"), Status::kSuccess);
  EXPECT_GE(node_.alarm(), node_.time + sec(10));
  while (node_.alarm() != Time::never()) {
    node_.ring_alarm();
    target_.on_ready();
  }
  EXPECT_EQ(node_.time, Time() + sec(60));
  EXPECT_FALSE(node_.is_open(admin));
}

TEST_F(TargetAuthenticationTest, AuthenticationCommandsAreChecked) {
  const auto admin = request(0);
  EXPECT_EQ(connect(admin, 0, nvme::kDynamicController, 0, "nqn.secret"), Status::kSuccess);
  using nvme::FabricsType;
  const auto receive = authentication_command(FabricsType::kAuthenticationReceive, 4096);
  EXPECT_EQ(status(admin, receive), Status::kCommandSequenceError);  // the host sends first
  Command wrong = receive;
  wrong.cdw[0] = 0;  // SECP
  EXPECT_EQ(status(admin, wrong), Status::kInvalidField);
  for (const u32 length : {0u, 4097u, 0xffffffffu})
    EXPECT_EQ(status(admin, authentication_command(FabricsType::kAuthenticationSend, length)),
              Status::kInvalidField);
  EXPECT_EQ(status(admin, authentication_command(FabricsType::kAuthenticationSend, 72),
                   std::array<u8, 71>{}),
            Status::kSGLOffsetInvalid);
  const auto negotiate =
      nvme::AuthNegotiate{.hashes = {nvme::AuthHash::kSHA256}, .groups = {nvme::DHGroup::kNull}}
          .encode();
  EXPECT_EQ(status(admin, authentication_command(FabricsType::kAuthenticationSend, 72), negotiate),
            Status::kSuccess);
  EXPECT_EQ(status(admin, authentication_command(FabricsType::kAuthenticationReceive, 47)),
            Status::kInvalidField);  // the challenge has 48 bytes
  EXPECT_EQ(status(admin, receive), Status::kSuccess);
  EXPECT_EQ(node_.sent.front().bytes.size(), 48u);
}

// A second target as another thread has it: with a node, stores and subsystems of its own.
TEST_F(TargetTest, IOQueuesOnOtherThreadsFollowTheirController) {
  const auto registry = std::make_shared<ControllerRegistry>();
  Target first(node_, config(), registry);
  first.add_subsystem(subsystem_);
  test::ScriptedNode other_node;
  MemoryStore other_store(
      *other_node.allocate(kDiskBytes, application::Content::kBytes, application::Access::kLocal),
      9);
  Subsystem other_subsystem("nqn.a");
  other_subsystem.add_namespace(other_store);
  Target other(other_node, config(), registry);
  other.add_subsystem(other_subsystem);

  const auto run = [](test::ScriptedNode& node, Target& target, application::ConnectionId id,
                      const Command& command, std::span<const u8> data = {}) {
    std::vector<u8> capsule(Command::kSize);
    command.encode(std::span<u8, Command::kSize>(capsule.data(), Command::kSize));
    capsule.insert(capsule.end(), data.begin(), data.end());
    node.sent.clear();
    EXPECT_TRUE(node.deliver(id, capsule));
    target.on_ready();
    return Completion::decode(std::span<const u8, Completion::kSize>(node.sent.back().bytes.data(),
                                                                     Completion::kSize))
        .code();
  };
  const auto begin = [&](test::ScriptedNode& node, Target& target, u16 qid, u16 controller) {
    const auto id = node.request(
        nvme::RDMARequestData{.qid = qid, .receive_queue_size = 16, .send_queue_size = 15}
            .encode());
    target.on_ready();
    Command command{.sgl = nvme::SGLDescriptor::in_capsule(nvme::ConnectData::kSize)};
    nvme::ConnectCommand{.qid = qid, .sq_size = 15}.put_into(command);
    std::array<u8, nvme::ConnectData::kSize> data{};
    nvme::ConnectData{.controller_id = controller, .subsystem_nqn = "nqn.a", .host_nqn = "nqn.h"}
        .encode(data);
    EXPECT_EQ(run(node, target, id, command, data), Status::kSuccess);
    return id;
  };
  const auto admin = begin(node_, first, 0, nvme::kDynamicController);
  Command enable{.opcode = nvme::kFabricsOpcode};
  enable.cdw[1] = static_cast<u32>(nvme::Property::kCC);
  enable.cdw[2] = nvme::kCCFabrics | nvme::kCCEnable;
  EXPECT_EQ(run(node_, first, admin, enable), Status::kSuccess);
  const auto io = begin(other_node, other, 1, 1);
  EXPECT_EQ(run(other_node, other, io, read(512)), Status::kSuccess);
  EXPECT_EQ(first.stats()[0].counts.reads, 1u);

  node_.disconnect(admin);
  first.on_ready();
  EXPECT_EQ(first.controllers(), 0u);
  EXPECT_TRUE(other_node.is_open(io));
  other.on_ready();
  EXPECT_FALSE(other_node.is_open(io));
}

TEST_F(TargetTest, CountersOfASubsystemOutliveItsControllers) {
  const auto admin = live_admin();
  const auto io = live_io();
  EXPECT_EQ(status(io, read(1024)), Status::kSuccess);
  Command far = read(512);
  far.cdw[0] = 1u << 20;
  EXPECT_EQ(status(io, far), Status::kLBAOutOfRange);
  ASSERT_EQ(target_.stats().size(), 1u);
  const SubsystemStats expected{"nqn.a", {.reads = 1, .bytes_read = 1024, .errors = 1}, 1};
  EXPECT_EQ(target_.stats()[0], expected);
  node_.disconnect(admin);
  target_.on_ready();
  EXPECT_EQ(target_.controllers(), 0u);
  EXPECT_EQ(target_.stats()[0], (SubsystemStats{"nqn.a", expected.counts, 0}));
}

TEST_F(TargetTest, SilenceEndsAControllerAndTrafficKeepsIt) {
  const auto admin = live_admin(1000);
  node_.time = node_.time + ms(900);
  EXPECT_EQ(status(admin, {.opcode = 0x18}), Status::kSuccess);
  node_.time = node_.time + ms(900);
  node_.ring_alarm();
  target_.on_ready();
  EXPECT_TRUE(node_.is_open(admin));
  node_.time = node_.time + sec(2);
  node_.ring_alarm();
  target_.on_ready();
  EXPECT_FALSE(node_.is_open(admin));
  EXPECT_EQ(target_.counters().keep_alive_expirations, 1u);
}

}  // namespace
}  // namespace verbena::nvmf
