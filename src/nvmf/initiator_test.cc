#include "nvmf/initiator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nvmf/scripted_node_for_test.h"

namespace verbena::nvmf {
namespace {

using nvme::Command;
using nvme::Completion;
using testing::HasSubstr;

class InitiatorTest : public testing::Test {
 protected:
  InitiatorTest() : initiator_(node_, {.subsystem_nqn = "nqn.a", .host_nqn = "nqn.h"}) {
    initiator_.start();
    node_.establish(kConnection);
    initiator_.on_ready();
  }
  void answer_last() {
    ASSERT_FALSE(node_.sent.empty());
    const auto command = Command::decode(
        std::span<const u8, Command::kSize>(node_.sent.back().bytes.data(), Command::kSize));
    std::array<u8, Completion::kSize> response{};
    Completion{.sq_head = 1, .cid = command.cid}.encode(response);
    EXPECT_TRUE(node_.deliver(kConnection, response));
    initiator_.on_ready();
  }
  void pass(Duration time) {
    node_.time = node_.time + time;
    if (node_.alarm() <= node_.time) node_.ring_alarm();
    initiator_.on_ready();
  }

  static constexpr application::ConnectionId kConnection = 1;
  test::ScriptedNode node_;
  Initiator initiator_;
};

TEST_F(InitiatorTest, ASlowTargetHasTimeForEachStep) {
  for (int step = 0; step < 3; ++step) {  // Connect, CAP, CC
    pass(sec(4));
    answer_last();
    EXPECT_EQ(initiator_.state(), Initiator::State::kConnecting) << initiator_.failure();
  }
  pass(sec(6));
  EXPECT_EQ(initiator_.state(), Initiator::State::kWaiting);
  EXPECT_THAT(initiator_.failure(), HasSubstr("does not answer"));
}

// Its answers are no progress.
TEST_F(InitiatorTest, AControllerThatIsNeverReadyIsGivenUp) {
  for (int step = 0; step < 3; ++step) answer_last();
  for (int poll = 0; poll < 5; ++poll) {
    EXPECT_EQ(initiator_.state(), Initiator::State::kConnecting);
    answer_last();  // CSTS is 0
    pass(sec(1));
  }
  EXPECT_EQ(initiator_.state(), Initiator::State::kWaiting);
}

}  // namespace
}  // namespace verbena::nvmf
