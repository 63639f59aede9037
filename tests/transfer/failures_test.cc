// Loss, paths that die, and peers that are killed, stopped or leave.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "tests/transfer/agents.h"

namespace verbena::transfer_test {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

constexpr size_t kBytes = 32 << 20;

// A child with an agent "b" and memory that holds pattern(kBytes, 2). It tells the agent's address
// and the memory's, and ends when it hears something.
void serve(int tell, int hear, const AgentWish& options = {}) {
  auto memory = pattern(kBytes, 2);  // outlives its registration
  const auto agent = make_agent("b", options);
  add_memory(agent.get(), memory);
  write_line(tell, verbena_agent_address(agent.get()));
  write_line(tell, std::to_string(reinterpret_cast<uint64_t>(memory.data())));
  read_line(hear);
}

struct Reader {
  AgentPtr agent;
  std::vector<unsigned char> memory = std::vector<unsigned char>(kBytes);
  TransferPtr transfer{};
};

Reader reader_of(Child& child, const AgentWish& options = {}) {
  const std::string address = child.hear_line();
  const uint64_t remote = std::stoull(child.hear_line());
  Reader reader{.agent = make_agent("a", options)};
  add_memory(reader.agent.get(), reader.memory);
  meet(reader.agent.get(), address);
  reader.transfer = prepare(reader.agent.get(), VERBENA_READ, {block(reader.memory, 0, kBytes)},
                            {{.address = remote, .length = kBytes, .region = 0}}, "b");
  return reader;
}

TEST(TransferFailures, LossLosesNothing) {
  if (is_on_iwarp()) GTEST_SKIP() << "faults are of packets";
  use_devices({.address = "127.41.1.1", .faults = "loss 0.5%", .is_local = false});
  Child child([](int tell, int hear) { serve(tell, hear); });
  const Reader reader = reader_of(child);
  ASSERT_EQ(run(reader.transfer, 60), VERBENA_TRANSFER_OK) << verbena_agent_error();
  EXPECT_TRUE(reader.memory == pattern(kBytes, 2));
}

TEST(TransferFailures, AKilledPeerFailsTheTransfer) {
  use_devices({.address = "127.41.1.2", .is_local = false});
  Child child([](int tell, int hear) { serve(tell, hear); });
  const Reader reader = reader_of(child);
  ASSERT_EQ(run(reader.transfer), VERBENA_TRANSFER_OK) << verbena_agent_error();
  ASSERT_EQ(verbena_transfer_post(reader.transfer.get()), VERBENA_TRANSFER_OK);
  child.kill_it(SIGKILL);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(verbena_transfer_wait(reader.transfer.get(), 30), VERBENA_TRANSFER_PEER);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  EXPECT_THAT(verbena_transfer_error(reader.transfer.get()), HasSubstr("agent b"));
  EXPECT_EQ(run(reader.transfer), VERBENA_TRANSFER_PEER);  // nobody listens there now
}

TEST(TransferFailures, APeerThatLeavesSaysSo) {
  use_devices({.address = "127.41.1.3"});
  Child child([](int tell, int hear) { serve(tell, hear); });
  const Reader reader = reader_of(child);
  ASSERT_EQ(run(reader.transfer), VERBENA_TRANSFER_OK) << verbena_agent_error();
  child.tell_line("leave");
  const auto again = [&] {
    for (int i = 0; i < 2000; ++i)
      if (const int status = run(reader.transfer); status != VERBENA_TRANSFER_OK) return status;
    return int{VERBENA_TRANSFER_OK};
  };
  EXPECT_EQ(again(), VERBENA_TRANSFER_PEER);
}

// The sender knows that the notification is there, and leaves at once.
TEST(TransferFailures, ANotificationOutlivesItsSender) {
  use_devices({.address = "127.41.1.7", .is_local = false});
  constexpr int kRounds = 20;
  Child child([](int, int hear) {
    const std::string address = read_line(hear);
    for (int round = 0; round < kRounds; ++round) {
      const auto agent = make_agent("b");
      meet(agent.get(), address);
      const int sent = verbena_agent_notify(agent.get(), "a", "bye", 3, 30);
      EXPECT_EQ(sent, VERBENA_TRANSFER_OK) << verbena_agent_error();
    }
    read_line(hear);
  });
  const auto agent = make_agent("a");
  child.tell_line(verbena_agent_address(agent.get()));
  for (int round = 0; round < kRounds; ++round) {
    char text[8];
    size_t size = sizeof text;
    ASSERT_EQ(verbena_agent_next_notification(agent.get(), "b", 10, nullptr, 0, text, &size),
              VERBENA_TRANSFER_OK)
        << round;
  }
}

TEST(TransferFailures, AStoppedPeerGoesOn) {
  use_devices({.address = "127.41.1.4", .is_local = false});
  Child child([](int tell, int hear) { serve(tell, hear); });
  const Reader reader = reader_of(child);
  ASSERT_EQ(verbena_agent_connect(reader.agent.get(), "b", 10), VERBENA_TRANSFER_OK);
  child.kill_it(SIGSTOP);
  ASSERT_EQ(verbena_transfer_post(reader.transfer.get()), VERBENA_TRANSFER_OK);
  EXPECT_EQ(verbena_transfer_wait(reader.transfer.get(), 3), VERBENA_TRANSFER_IN_PROGRESS);
  child.kill_it(SIGCONT);
  EXPECT_EQ(verbena_transfer_wait(reader.transfer.get(), 30), VERBENA_TRANSFER_OK)
      << verbena_agent_error();
  EXPECT_TRUE(reader.memory == pattern(kBytes, 2));
}

// The second device loses all packets from the 200th on: its requests go to the first.
TEST(TransferFailures, ADeadPathsRequestsGoToTheOther) {
  if (is_on_iwarp()) GTEST_SKIP() << "faults are of packets";
  const char* const devices = "127.41.1.5,127.41.1.6";
  use_devices({.address = devices, .is_local = false});
  Child child([](int tell, int hear) { serve(tell, hear); });
  use_devices(
      {.address = devices, .faults = "blackhole peer=127.41.1.6 nth=200-", .is_local = false});
  const Reader reader = reader_of(child);
  ASSERT_EQ(verbena_agent_connect(reader.agent.get(), "b", 10), VERBENA_TRANSFER_OK);
  for (int round = 0; round < 8; ++round)
    ASSERT_EQ(run(reader.transfer, 60), VERBENA_TRANSFER_OK) << verbena_agent_error();
  EXPECT_TRUE(reader.memory == pattern(kBytes, 2));
  EXPECT_GE(counters_of(reader.agent).lanes_lost, 1u);
}

}  // namespace
}  // namespace verbena::transfer_test
