// NVMe over Fabrics: connection requests and capsules of any bytes to a target, and responses of
// any bytes to a host. The node checks that each access stays in its region; a namespace that no
// host may reach keeps its contents; and the target still serves a host afterwards.
#include <cstring>

#include "base/check.h"
#include "nvmf/authentication/cryptography_for_test.h"
#include "nvmf/authentication/host_authentication.h"
#include "nvmf/initiator.h"
#include "nvmf/memory_store.h"
#include "nvmf/scripted_node_for_test.h"
#include "nvmf/target.h"

namespace verbena {
namespace {

using nvmf::test::ScriptedNode;

constexpr u64 kBytes = 64 * 1024;

// Takes the input from its front.
class Input {
 public:
  Input(const u8* data, std::size_t size) : left_(data, size) {}
  [[nodiscard]] bool is_empty() const { return left_.empty(); }
  std::span<const u8> take(std::size_t bytes) {
    const auto part = left_.first(std::min(bytes, left_.size()));
    left_ = left_.subspan(part.size());
    return part;
  }
  u8 byte() {
    const auto part = take(1);
    return part.empty() ? u8{0} : part[0];
  }

 private:
  std::span<const u8> left_;
};

std::vector<u8> connect_capsule(u16 qid, u16 controller, std::string_view host = "nqn.h") {
  std::vector<u8> capsule(nvme::Command::kSize + nvme::ConnectData::kSize);
  nvme::Command command{.sgl = nvme::SGLDescriptor::in_capsule(nvme::ConnectData::kSize)};
  nvme::ConnectCommand{.qid = qid, .sq_size = 15}.put_into(command);
  command.encode(std::span<u8, nvme::Command::kSize>(capsule.data(), nvme::Command::kSize));
  nvme::ConnectData data{
      .controller_id = controller, .subsystem_nqn = "nqn.a", .host_nqn = std::string(host)};
  data.encode(std::span<u8, nvme::ConnectData::kSize>(capsule.data() + nvme::Command::kSize,
                                                      nvme::ConnectData::kSize));
  return capsule;
}

std::vector<u8> enable_capsule() {
  std::vector<u8> capsule(nvme::Command::kSize);
  nvme::Command command{.opcode = nvme::kFabricsOpcode, .nsid = 0};
  command.cdw[1] = static_cast<u32>(nvme::Property::kCC);
  command.cdw[2] = nvme::kCCFabrics | nvme::kCCEnable;
  command.encode(std::span<u8, nvme::Command::kSize>(capsule.data(), nvme::Command::kSize));
  return capsule;
}

// NQN of the host with a key; Connect of a host of any other NQN needs none.
constexpr std::string_view kSecretHost = "nqn.s";

struct World {
  nvmf::test::ToyCryptography cryptography;
  ScriptedNode node;
  nvmf::MemoryStore open{
      *node.allocate(kBytes, application::Content::kBytes, application::Access::kLocal), 9};
  nvmf::MemoryStore secret{
      *node.allocate(kBytes, application::Content::kBytes, application::Access::kLocal), 9};
  nvmf::Subsystem a{"nqn.a"}, b{"nqn.b"};
  nvmf::Target target{node, config(cryptography)};

  World() {
    a.add_namespace(open);
    b.add_namespace(secret);
    b.allow_host("nqn.nobody-has-it");
    a.allow_host("nqn.h");
    a.require_authentication(std::string(kSecretHost), {{.key = std::vector<u8>(32, 1)}, {}});
    target.add_subsystem(a);
    target.add_subsystem(b);
    std::memset(secret.memory()->bytes.data(), 0x5a, kBytes);
    CHECK(target.start() == Status::kOk);
  }
  static nvmf::TargetConfig config(nvmf::Cryptography& cryptography) {
    nvmf::TargetConfig config;
    config.cryptography = &cryptography;
    config.small_buffers = config.large_buffers = 2;
    config.limits.max_transfer_pages_log2 = 4;
    config.limits.in_capsule_bytes = nvme::ConnectData::kSize;
    config.admin_data_bytes = nvme::kIdentifySize;
    return config;
  }
  application::ConnectionId connect(u16 qid) {
    const auto id = node.request(
        nvme::RDMARequestData{.qid = qid, .receive_queue_size = 16, .send_queue_size = 15}
            .encode());
    target.on_ready();
    node.deliver(id, connect_capsule(qid, qid == 0 ? nvme::kDynamicController : u16{1}));
    target.on_ready();
    return id;
  }
  // Returns false if the connection got no response, or one with an error.
  bool serves() {
    const auto id = connect(0);
    return !node.sent.empty() && node.sent.back().connection == id &&
           node.sent.back().bytes.size() == nvme::Completion::kSize &&
           node.sent.back().bytes[14] == 0 && node.sent.back().bytes[15] == 0;
  }
};

void fuzz_target(Input& input) {
  World world;
  std::vector<application::ConnectionId> connections{world.connect(0)};
  world.node.deliver(connections[0], enable_capsule());
  world.target.on_ready();
  connections.push_back(world.connect(1));
  while (!input.is_empty()) {
    const u8 choice = input.byte();
    if (choice == 0xff) {
      connections.push_back(world.node.request(input.take(32)));
    } else if (choice == 0xfe) {
      world.node.ring_alarm();
    } else if (choice == 0xfd) {
      world.node.disconnect(connections[input.byte() % connections.size()]);
    } else if (choice == 0xfc) {
      const auto bytes = input.take(64);
      world.node.fetched.assign(bytes.begin(), bytes.end());
    } else {
      std::vector<u8> capsule(nvme::Command::kSize);
      const auto bytes = input.take(choice < 4 ? choice : nvme::Command::kSize);
      std::copy(bytes.begin(), bytes.end(), capsule.begin());
      capsule.resize(choice < 4 ? bytes.size() : nvme::Command::kSize + 64 * (choice & 7u));
      world.node.deliver(connections[choice / 8 % connections.size()], capsule);
    }
    world.target.on_ready();
  }
  const application::Region secret = *world.secret.memory();
  for (const u8 byte : secret.bytes) CHECK(byte == 0x5a);
  for (const auto& sent : world.node.sent)
    if (sent.operation == application::Operation::kWrite)
      CHECK(std::search_n(sent.bytes.begin(), sent.bytes.end(), 64, u8{0x5a}) == sent.bytes.end());
  CHECK(world.serves());
}

// Authentication messages of any bytes never authenticate a host without the key.
void fuzz_authentication(Input& input) {
  World world;
  const auto id = world.node.request(
      nvme::RDMARequestData{.receive_queue_size = 16, .send_queue_size = 15}.encode());
  world.target.on_ready();
  world.node.deliver(id, connect_capsule(0, nvme::kDynamicController, kSecretHost));
  world.target.on_ready();
  while (!input.is_empty()) {
    const u8 choice = input.byte();
    const bool sends = (choice & 1) != 0;
    const auto message = input.take(sends ? input.byte() * 4u : 0);
    const u32 length = sends ? static_cast<u32>(message.size()) : 16u * choice;
    nvme::Command command{.sgl = sends ? nvme::SGLDescriptor::in_capsule(length)
                                       : nvme::SGLDescriptor::keyed(0x1000, length, 7)};
    nvme::AuthCommand{.length = length}.put_into(
        command,
        sends ? nvme::FabricsType::kAuthenticationSend : nvme::FabricsType::kAuthenticationReceive);
    std::vector<u8> capsule(nvme::Command::kSize);
    command.encode(std::span<u8, nvme::Command::kSize>(capsule.data(), nvme::Command::kSize));
    capsule.insert(capsule.end(), message.begin(), message.end());
    world.node.deliver(id, capsule);
    world.target.on_ready();
  }
  world.node.sent.clear();
  world.node.deliver(id, enable_capsule());
  world.target.on_ready();
  if (!world.node.sent.empty())
    CHECK(
        nvme::Completion::decode(std::span<const u8, nvme::Completion::kSize>(
                                     world.node.sent.back().bytes.data(), nvme::Completion::kSize))
            .code() == nvme::Status::kAuthenticationRequired);
  CHECK(world.serves());
}

// Messages of any bytes to a host that authenticates itself and its controller.
void fuzz_host_authentication(Input& input) {
  nvmf::test::ToyCryptography cryptography;
  const nvmf::CHAPKeys keys{{.key = std::vector<u8>(32, 1)},
                            nvmf::AuthSecret{.key = std::vector<u8>(32, 2)}};
  const nvmf::CHAPPolicy policy;
  nvmf::HostAuthentication host(cryptography, keys, policy, {"nqn.h", "nqn.a"}, 0);
  while (!input.is_empty() && !host.is_over()) {
    (void)host.poll_message();
    host.on_message(input.take(input.byte() * 4u));
  }
  CHECK(!host.is_authenticated());
}

void fuzz_host(Input& input) {
  ScriptedNode node;
  nvmf::InitiatorConfig config;
  config.subsystem_nqn = "nqn.a";
  config.host_nqn = "nqn.h";
  config.loss_timeout = Duration();
  nvmf::Initiator initiator(node, config);
  initiator.start();
  application::ConnectionId last = 1;
  node.establish(last);
  initiator.on_ready();
  while (!input.is_empty()) {
    const u8 choice = input.byte();
    std::array<u8, nvme::Completion::kSize> response{};
    const auto bytes = input.take(choice == 0xff ? 7 : nvme::Completion::kSize);
    std::copy(bytes.begin(), bytes.end(), response.begin());
    if ((choice & 1) != 0) response[12] = response[13] = response[14] = response[15] = 0;
    node.deliver(last, std::span(response).first(choice == 0xff ? 7 : response.size()));
    initiator.submit({.blocks = 1, .data = {1, 512, 1, 1}});
    initiator.on_ready();
    if (node.is_open(last + 1)) node.establish(++last);
    initiator.on_ready();
  }
}

}  // namespace
}  // namespace verbena

extern "C" int LLVMFuzzerTestOneInput(const verbena::u8* data, std::size_t size) {
  if (size < 2) return 0;
  verbena::Input input(data + 1, size - 1);
  switch (data[0] % 6) {
    case 0: verbena::fuzz_host(input); break;
    case 4: verbena::fuzz_authentication(input); break;
    case 5: verbena::fuzz_host_authentication(input); break;
    default: verbena::fuzz_target(input);
  }
  return 0;
}
