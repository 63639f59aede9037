#include "verbs/live_node.h"

#include <gtest/gtest.h>

#include "verbs/two_nodes_for_test.h"

namespace verbena::verbs {
namespace {

using application::ConnectionId;
using application::Event;
using application::Region;

constexpr u16 kPort = 7472;
constexpr u32 kMessages = 500, kBytes = 256;  // too long to be inline

Region memory_of(application::Node& node) {
  return *node.allocate(u64{kMessages} * kBytes, application::Content::kBytes,
                        application::Access::kLocal);
}

application::Slice slice_of(const Region& region, u32 message) {
  return {region.address + u64{message} * kBytes, kBytes, region.l_key};
}

// Takes all messages.
class Receiver final : public application::Program {
 public:
  Receiver(application::Node& node, const application::Address& at)
      : node_(node), memory_(memory_of(node)) {
    EXPECT_EQ(node.listen(at, {.sends = 1, .receives = kMessages}), Status::kOk);
  }
  void on_ready() override {
    for (Event event; node_.poll(event);) {
      if (event.kind == Event::Kind::kReceived) ids_.push_back(event.id);
      if (event.kind != Event::Kind::kConnectRequest) continue;
      for (u32 i = 0; i < kMessages; ++i)
        node_.post_receive(event.connection, i, slice_of(memory_, i));
      node_.accept(event.connection, {});
    }
  }
  [[nodiscard]] const std::vector<u32>& ids() const { return ids_; }
  [[nodiscard]] std::span<const u8> bytes() const { return memory_.bytes; }

 private:
  application::Node& node_;
  Region memory_;
  std::vector<u32> ids_{};
};

// Sends all messages as soon as it is connected; none is reported.
class Sender final : public application::Program {
 public:
  Sender(application::Node& node, const application::Address& to, u32 depth)
      : node_(node), memory_(memory_of(node)) {
    for (std::size_t i = 0; i < memory_.bytes.size(); ++i)
      memory_.bytes[i] = static_cast<u8>(i / kBytes + i);
    EXPECT_TRUE(node.connect(to, {.sends = depth, .receives = 1}, {}).has_value());
  }
  void on_ready() override {
    for (Event event; node_.poll(event);) {
      if (event.kind == Event::Kind::kConnected) send_all(event.connection);
      if (event.kind == Event::Kind::kClosed) is_closed_ = true;
    }
  }
  [[nodiscard]] bool is_closed() const { return is_closed_; }
  [[nodiscard]] std::span<const u8> bytes() const { return memory_.bytes; }

 private:
  void send_all(ConnectionId connection) {
    for (u32 i = 0; i < kMessages; ++i) {
      const std::array slices{slice_of(memory_, i)};
      node_.post(connection, {.local = slices, .report = application::Report::kFailureOnly});
    }
  }
  application::Node& node_;
  Region memory_;
  bool is_closed_ = false;
};

class Depths : public testing::TestWithParam<u32> {};

TEST_P(Depths, FurtherSendsWaitForRoom) {
  test::LivePair nodes;
  Receiver receiver(nodes.server(), nodes.server_address(kPort));
  Sender sender(nodes.client(), nodes.server_address(kPort), GetParam());
  nodes.run(receiver, sender,
            [&] { return receiver.ids().size() == kMessages || sender.is_closed(); });
  EXPECT_FALSE(sender.is_closed());
  ASSERT_EQ(receiver.ids().size(), kMessages);
  for (u32 i = 0; i < kMessages; ++i) EXPECT_EQ(receiver.ids()[i], i);
  EXPECT_TRUE(std::ranges::equal(receiver.bytes(), sender.bytes()));
}

INSTANTIATE_TEST_SUITE_P(Sends, Depths, testing::Values(1, 2, 5, 64));

}  // namespace
}  // namespace verbena::verbs
