// The same transfers on both drivers of application::Node: lists of blocks are read and written
// back, with one notification behind the last block.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/bytes.h"
#include "transfer/node_flow.h"
#include "verbs/two_nodes_for_test.h"

namespace verbena::transfer {
namespace {

using application::Access;
using application::Content;
using application::Event;
using application::Region;

constexpr u16 kTransferPort = 7473;
constexpr u64 kMemoryBytes = 1 << 20;
constexpr u32 kToldBytes = 12;

class MemoryServer final : public application::Program {
 public:
  MemoryServer(application::Node& node, const application::Address& at)
      : node_(node),
        memory_(*node.allocate(kMemoryBytes, Content::kBytes, Access::kRemoteReadWrite)),
        inbox_(*node.allocate(NodeFlow::kTagBytes, Content::kBytes, Access::kLocal)) {
    for (u64 i = 0; i < kMemoryBytes; ++i) memory_.bytes[i] = static_cast<u8>(i * 7 + i / 251);
    EXPECT_EQ(node.listen(at, {.sends = 4, .receives = 4}), verbena::Status::kOk);
  }
  void on_ready() override {
    for (Event event; node_.poll(event);) {
      if (event.kind == Event::Kind::kReceived) tags_.push_back(read_tag(inbox_.bytes));
      if (event.kind != Event::Kind::kConnectRequest) continue;
      node_.post_receive(event.connection, 0, {inbox_.address, NodeFlow::kTagBytes, inbox_.l_key});
      std::array<u8, kToldBytes> told{};
      Writer<kToldBytes> out(told);
      out.put64<0>(memory_.address);
      out.put32<8>(memory_.r_key);
      node_.accept(event.connection, told);
    }
  }
  [[nodiscard]] const Region& memory() const { return memory_; }
  [[nodiscard]] const std::vector<u64>& tags() const { return tags_; }

 private:
  application::Node& node_;
  Region memory_, inbox_;
  std::vector<u64> tags_{};
};

class MemoryClient final : public application::Program {
 public:
  MemoryClient(application::Node& node, const application::Address& server)
      : node_(node),
        memory_(*node.allocate(kMemoryBytes, Content::kBytes, Access::kLocal)),
        flow_(node, {.requests_per_lane = 16, .piece_bytes = 16384}) {
    EXPECT_EQ(flow_.add_local_region(memory_.l_key), 0u);
    const auto connection = node.connect(server, {.sends = 32, .receives = 1}, {});
    EXPECT_TRUE(connection.has_value());
  }
  void on_ready() override {
    for (Event event; node_.poll(event);) {
      if (event.kind == Event::Kind::kConnected) {
        const Reader<kToldBytes> in(event.private_data.first<kToldBytes>());
        remote_ = in.get64<0>();
        EXPECT_EQ(flow_.add_remote_region(in.get32<8>()), 0u);
        flow_.add_lane(event.connection);
      } else {
        (void)flow_.on_event(event);
      }
    }
    flow_.pump();
    while (const auto outcome = flow_.poll_outcome()) outcomes_.push_back(outcome->result);
  }
  // Blocks of 3,000 bytes, whose order is reversed.
  void start(u32 id, Operation operation, bool notifies) {
    std::vector<Copy> copies;
    for (u64 i = 0; i < kBlocks; ++i)
      copies.push_back({.local = memory_.address + i * kBlock,
                        .remote = remote_ + (kBlocks - 1 - i) * kBlock,
                        .length = kBlock});
    EXPECT_TRUE(
        flow_.start({.id = id, .operation = operation, .copies = copies, .notifies = notifies},
                    0x1122334455667788 + id));
    flow_.pump();
  }
  static constexpr u64 kBlocks = 300, kBlock = 3000;
  [[nodiscard]] bool is_connected() const { return remote_ != 0; }
  [[nodiscard]] const Region& memory() const { return memory_; }
  [[nodiscard]] const std::vector<Result>& outcomes() const { return outcomes_; }

 private:
  application::Node& node_;
  Region memory_;
  NodeFlow flow_;
  u64 remote_ = 0;
  std::vector<Result> outcomes_{};
};

class TransferOnNodes
    : public testing::TestWithParam<std::function<std::unique_ptr<test::TwoNodes>()>> {};

TEST_P(TransferOnNodes, ReadsAndWritesLists) {
  const std::unique_ptr<test::TwoNodes> nodes = GetParam()();
  MemoryServer server(nodes->server(), nodes->server_address(kTransferPort));
  MemoryClient client(nodes->client(), nodes->server_address(kTransferPort));
  nodes->run(server, client, [&] { return client.is_connected(); });
  const std::vector<u8> before(server.memory().bytes.begin(), server.memory().bytes.end());
  client.start(1, Operation::kRead, false);
  nodes->run(server, client, [&] { return client.outcomes().size() == 1; });
  for (u64 i = 0; i < MemoryClient::kBlocks; ++i)
    EXPECT_TRUE(std::equal(
        client.memory().bytes.begin() + static_cast<std::ptrdiff_t>(i * MemoryClient::kBlock),
        client.memory().bytes.begin() + static_cast<std::ptrdiff_t>((i + 1) * MemoryClient::kBlock),
        before.begin() +
            static_cast<std::ptrdiff_t>((MemoryClient::kBlocks - 1 - i) * MemoryClient::kBlock)))
        << i;
  std::ranges::fill(server.memory().bytes, u8{0});
  client.start(2, Operation::kWrite, true);
  nodes->run(server, client, [&] { return server.tags().size() == 1; });
  EXPECT_EQ(server.tags()[0], 0x112233445566778au);
  const auto bytes = static_cast<std::ptrdiff_t>(MemoryClient::kBlocks * MemoryClient::kBlock);
  EXPECT_TRUE(std::equal(before.begin(), before.begin() + bytes, server.memory().bytes.begin()));
  nodes->run(server, client, [&] { return client.outcomes().size() == 2; });
  EXPECT_EQ(client.outcomes(), (std::vector{Result::kDone, Result::kDone}));
}

INSTANTIATE_TEST_SUITE_P(
    Drivers, TransferOnNodes,
    testing::Values([] { return std::unique_ptr<test::TwoNodes>(new test::SimulatedPair); },
                    [] { return std::unique_ptr<test::TwoNodes>(new test::LivePair); }),
    [](const auto& tested) { return tested.index == 0 ? "Simulated" : "Live"; });

}  // namespace
}  // namespace verbena::transfer
