// Transfers between two agents: lists, notifications, metadata, priorities, refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/transfer/agents.h"

namespace verbena::transfer_test {
namespace {

using testing::HasSubstr;

struct Pair {
  AgentPtr a, b;
  std::vector<unsigned char> here, there;
  std::string peer;  // b's name
};

Pair make_pair_of_agents(size_t bytes, const AgentWish& options = {}) {
  Pair pair{make_agent("a", options), make_agent("b", options), pattern(bytes, 1),
            pattern(bytes, 2), ""};
  add_memory(pair.a.get(), pair.here);
  add_memory(pair.b.get(), pair.there);
  pair.peer = meet(pair.a.get(), verbena_agent_address(pair.b.get()));
  return pair;
}

std::string notification_of(verbena_agent* agent, double seconds = 10) {
  char peer[256], text[VERBENA_NOTIFICATION_MAX];
  size_t size = sizeof text;
  if (verbena_agent_next_notification(agent, nullptr, seconds, peer, sizeof peer, text, &size) !=
      VERBENA_TRANSFER_OK)
    return "";
  return std::string(peer) + ": " + std::string(text, size);
}

// Scattered blocks of odd sizes, at other places on the other side.
struct Lists {
  std::vector<verbena_descriptor> local, remote;
};
Lists scattered(const Pair& pair, size_t count, size_t bytes) {
  Lists lists;
  for (size_t i = 0; i < count; ++i) {
    lists.local.push_back(block(pair.here, i * (bytes + 64), bytes));
    lists.remote.push_back(block(pair.there, (count - 1 - i) * (bytes + 32), bytes));
  }
  return lists;
}

class Transfers : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (is_on_iwarp() && GetParam()) GTEST_SKIP() << "an iWARP device has no local path";
    use_devices({.is_local = GetParam()});
  }
};
INSTANTIATE_TEST_SUITE_P(Paths, Transfers, testing::Bool(),
                         [](const auto& path) { return path.param ? "Local" : "Packets"; });

TEST_P(Transfers, WritesAScatteredListAndNotifiesOnce) {
  const Pair pair = make_pair_of_agents(4 << 20);
  const Lists lists = scattered(pair, 300, 4999);
  const auto transfer = prepare(pair.a.get(), VERBENA_WRITE, lists.local, lists.remote, pair.peer,
                                {.notification = "all there"});
  std::vector<unsigned char> expected = pair.there;
  for (size_t i = 0; i < 300; ++i)
    std::copy_n(pair.here.begin() + static_cast<long>(i * (4999 + 64)), 4999,
                expected.begin() + static_cast<long>((299 - i) * (4999 + 32)));
  ASSERT_EQ(run(transfer), VERBENA_TRANSFER_OK) << verbena_agent_error();
  EXPECT_EQ(notification_of(pair.b.get()), "a: all there");
  EXPECT_TRUE(pair.there == expected);
  EXPECT_EQ(notification_of(pair.b.get(), 0), "");
}

TEST_P(Transfers, ReadsAgainAndAgain) {
  Pair pair = make_pair_of_agents(8 << 20);
  const auto transfer = prepare(pair.a.get(), VERBENA_READ, {block(pair.here, 0, 5 << 20)},
                                {block(pair.there, 100, 5 << 20)}, pair.peer);
  for (unsigned round = 3; round < 6; ++round) {
    const auto data = pattern(8 << 20, round);
    std::copy(data.begin(), data.end(), pair.there.begin());
    ASSERT_EQ(run(transfer), VERBENA_TRANSFER_OK) << verbena_agent_error();
    EXPECT_TRUE(std::equal(pair.here.begin(), pair.here.begin() + (5 << 20), data.begin() + 100));
  }
}

TEST_P(Transfers, ManyAtOnceWithNotifications) {
  const Pair pair = make_pair_of_agents(1 << 20);
  std::vector<TransferPtr> transfers;
  for (int i = 0; i < 200; ++i) {
    const std::string text = std::to_string(i);
    transfers.push_back(prepare(
        pair.a.get(), VERBENA_WRITE, {block(pair.here, static_cast<size_t>(i) * 4096, 4096)},
        {block(pair.there, static_cast<size_t>(i) * 4096, 4096)}, pair.peer,
        {.priority = static_cast<unsigned>(i % 3), .notification = text.c_str()}));
    ASSERT_EQ(verbena_transfer_post(transfers.back().get()), VERBENA_TRANSFER_OK)
        << verbena_agent_error();
  }
  std::vector<std::string> heard;
  for (int i = 0; i < 200; ++i) heard.push_back(notification_of(pair.b.get()));
  for (const auto& transfer : transfers)
    EXPECT_EQ(verbena_transfer_wait(transfer.get(), 30), VERBENA_TRANSFER_OK);
  std::ranges::sort(heard);
  EXPECT_EQ(std::ranges::unique(heard).begin(), heard.end());
  EXPECT_TRUE(std::equal(pair.here.begin(), pair.here.begin() + 200 * 4096, pair.there.begin()));
}

TEST_P(Transfers, BothDirectionsAtOnce) {
  Pair pair = make_pair_of_agents(2 << 20);
  ASSERT_EQ(meet(pair.b.get(), verbena_agent_address(pair.a.get())), "a");
  const auto there = prepare(pair.a.get(), VERBENA_WRITE, {block(pair.here, 0, 1 << 20)},
                             {block(pair.there, 0, 1 << 20)}, "b");
  const auto back = prepare(pair.b.get(), VERBENA_WRITE, {block(pair.there, 1 << 20, 1 << 20)},
                            {block(pair.here, 1 << 20, 1 << 20)}, "a");
  ASSERT_EQ(verbena_transfer_post(there.get()), VERBENA_TRANSFER_OK) << verbena_agent_error();
  ASSERT_EQ(verbena_transfer_post(back.get()), VERBENA_TRANSFER_OK) << verbena_agent_error();
  EXPECT_EQ(verbena_transfer_wait(there.get(), 30), VERBENA_TRANSFER_OK);
  EXPECT_EQ(verbena_transfer_wait(back.get(), 30), VERBENA_TRANSFER_OK);
  EXPECT_TRUE(pair.here == pair.there);
}

TEST_P(Transfers, CancelledOneTouchesNothingAfterwards) {
  Pair pair = make_pair_of_agents(64 << 20);
  const auto transfer = prepare(pair.a.get(), VERBENA_READ, {block(pair.here, 0, 64 << 20)},
                                {block(pair.there, 0, 64 << 20)}, pair.peer);
  ASSERT_EQ(verbena_transfer_post(transfer.get()), VERBENA_TRANSFER_OK) << verbena_agent_error();
  EXPECT_EQ(verbena_transfer_cancel(transfer.get()), VERBENA_TRANSFER_OK);
  const int status = verbena_transfer_wait(transfer.get(), 30);
  EXPECT_TRUE(status == VERBENA_TRANSFER_CANCELLED || status == VERBENA_TRANSFER_OK) << status;
  const std::vector<unsigned char> then = pair.here;
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_TRUE(pair.here == then);
}

TEST_P(Transfers, AccessToWithdrawnMemoryIsRefusedAndTheLinkGoesOn) {
  Pair pair = make_pair_of_agents(1 << 20);
  std::vector<unsigned char> more = pattern(1 << 20, 9);
  const uint64_t region = add_memory(pair.b.get(), more);
  meet(pair.a.get(), verbena_agent_address(pair.b.get()));
  const auto bad = prepare(pair.a.get(), VERBENA_WRITE, {block(pair.here, 0, 4096)},
                           {block(more, 0, 4096)}, "b");
  const auto good = prepare(pair.a.get(), VERBENA_WRITE, {block(pair.here, 0, 1 << 20)},
                            {block(pair.there, 0, 1 << 20)}, "b");
  ASSERT_EQ(run(good), VERBENA_TRANSFER_OK) << verbena_agent_error();
  ASSERT_EQ(verbena_agent_deregister(pair.b.get(), region), VERBENA_TRANSFER_OK);
  EXPECT_EQ(run(bad), VERBENA_TRANSFER_REFUSED);
  EXPECT_THAT(verbena_transfer_error(bad.get()), HasSubstr("agent b: refused"));
  EXPECT_TRUE(more == pattern(1 << 20, 9));
  EXPECT_EQ(run(good), VERBENA_TRANSFER_OK) << verbena_agent_error();
}

TEST(Agents, RefuseWrongArguments) {
  use_devices({});
  Pair pair = make_pair_of_agents(1 << 16);
  verbena_transfer* transfer = nullptr;
  const auto create = [&](verbena_descriptor local, verbena_descriptor remote,
                          const char* peer = "b") {
    return verbena_transfer_create(pair.a.get(), VERBENA_READ, &local, 1, &remote, 1, peer, nullptr,
                                   &transfer);
  };
  EXPECT_EQ(create(block(pair.here, 0, 10), block(pair.there, 0, 11)), VERBENA_TRANSFER_INVALID);
  EXPECT_EQ(create(block(pair.here, 0, 1 << 17), block(pair.there, 0, 1 << 17)),
            VERBENA_TRANSFER_INVALID);
  EXPECT_EQ(create(block(pair.here, 0, 10), block(pair.there, (1 << 16) - 9, 10)),
            VERBENA_TRANSFER_INVALID);
  EXPECT_THAT(verbena_agent_error(), HasSubstr("not in a registered region of agent b"));
  EXPECT_EQ(create(block(pair.here, 0, 10), block(pair.there, 0, 10), "c"),
            VERBENA_TRANSFER_NOT_FOUND);
  verbena_agent* agent = nullptr;
  EXPECT_EQ(verbena_agent_create(&agent, "two words", nullptr), VERBENA_TRANSFER_INVALID);
  EXPECT_EQ(verbena_agent_load_metadata(pair.a.get(), "nonsense", 8, nullptr, 0),
            VERBENA_TRANSFER_INVALID);
  EXPECT_EQ(verbena_agent_fetch_metadata(pair.a.get(), "nowhere", 1, nullptr, 0),
            VERBENA_TRANSFER_INVALID);
  EXPECT_EQ(verbena_agent_fetch_metadata(pair.a.get(), "127.0.0.1:1", 1, nullptr, 0),
            VERBENA_TRANSFER_PEER);
}

TEST(Agents, RightsOfARegion) {
  use_devices({});
  const auto a = make_agent("a"), b = make_agent("b");
  auto here = pattern(4096, 1), there = pattern(4096, 2);
  add_memory(a.get(), here, VERBENA_REMOTE_READ);
  add_memory(b.get(), there, VERBENA_REMOTE_READ);
  meet(a.get(), verbena_agent_address(b.get()));
  const verbena_descriptor local = block(here, 0, 4096), remote = block(there, 0, 4096);
  verbena_transfer* transfer = nullptr;
  EXPECT_EQ(verbena_transfer_create(a.get(), VERBENA_READ, &local, 1, &remote, 1, "b", nullptr,
                                    &transfer),
            VERBENA_TRANSFER_INVALID);
  EXPECT_THAT(verbena_agent_error(), HasSubstr("a READ may write"));
  EXPECT_EQ(verbena_transfer_create(a.get(), VERBENA_WRITE, &local, 1, &remote, 1, "b", nullptr,
                                    &transfer),
            VERBENA_TRANSFER_INVALID);
  EXPECT_THAT(verbena_agent_error(), HasSubstr("does not allow remote writes"));
}

TEST(Agents, MetadataTravelsAsBytes) {
  use_devices({});
  Pair pair = make_pair_of_agents(4096);
  size_t size = 0;
  EXPECT_EQ(verbena_agent_metadata(pair.b.get(), nullptr, &size), VERBENA_TRANSFER_NO_ROOM);
  std::string bytes(size, '\0');
  ASSERT_EQ(verbena_agent_metadata(pair.b.get(), bytes.data(), &size), VERBENA_TRANSFER_OK);
  char name[2];
  EXPECT_EQ(verbena_agent_load_metadata(pair.a.get(), bytes.data(), size, name, sizeof name),
            VERBENA_TRANSFER_OK);
  EXPECT_STREQ(name, "b");
  EXPECT_EQ(verbena_agent_forget(pair.a.get(), "b"), VERBENA_TRANSFER_OK);
  EXPECT_EQ(verbena_agent_connect(pair.a.get(), "b", 1), VERBENA_TRANSFER_NOT_FOUND);
}

TEST(Agents, ARestartedAgentIsAnotherOne) {
  use_devices({});
  const auto a = make_agent("a");
  std::string address;
  {
    const auto b = make_agent("b");
    address = verbena_agent_address(b.get());
    meet(a.get(), address);
  }
  const auto b = make_agent("b", {.listen = address.c_str()});
  EXPECT_EQ(verbena_agent_connect(a.get(), "b", 5), VERBENA_TRANSFER_PEER);
  EXPECT_THAT(verbena_agent_error(), HasSubstr("has restarted"));
  meet(a.get(), address);
  EXPECT_EQ(verbena_agent_connect(a.get(), "b", 5), VERBENA_TRANSFER_OK) << verbena_agent_error();
}

TEST(Agents, NotificationsWithoutTransfers) {
  use_devices({});
  const Pair pair = make_pair_of_agents(4096);
  const std::string longest(VERBENA_NOTIFICATION_MAX, 'x');
  for (int i = 0; i < 100; ++i)
    ASSERT_EQ(verbena_agent_notify(pair.a.get(), "b", longest.data(), longest.size(), 10),
              VERBENA_TRANSFER_OK)
        << verbena_agent_error();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(notification_of(pair.b.get()), "a: " + longest);
  char text[4];
  size_t size = sizeof text;
  ASSERT_EQ(verbena_agent_notify(pair.a.get(), "b", "12345", 5, 10), VERBENA_TRANSFER_OK);
  EXPECT_EQ(verbena_agent_next_notification(pair.b.get(), "a", 10, nullptr, 0, text, &size),
            VERBENA_TRANSFER_NO_ROOM);
  EXPECT_EQ(size, 5u);
  EXPECT_EQ(notification_of(pair.b.get()), "a: 12345");
}

TEST(Agents, StripeOverDevicesAndQueuePairs) {
  use_devices({.address = "127.41.0.2,127.41.0.3", .is_local = false});
  Pair pair = make_pair_of_agents(32 << 20, {.queue_pairs = 2});
  ASSERT_EQ(verbena_agent_connect(pair.a.get(), "b", 10), VERBENA_TRANSFER_OK);
  const auto transfer = prepare(pair.a.get(), VERBENA_READ, {block(pair.here, 0, 32 << 20)},
                                {block(pair.there, 0, 32 << 20)}, "b");
  ASSERT_EQ(run(transfer), VERBENA_TRANSFER_OK) << verbena_agent_error();
  EXPECT_TRUE(pair.here == pair.there);
  const verbena_agent_counters counters = counters_of(pair.a);
  EXPECT_EQ(counters.lanes_up, 4u);
  EXPECT_EQ(counters.bytes, 32u << 20);
  EXPECT_EQ(counters.transfers, 1u);
}

}  // namespace
}  // namespace verbena::transfer_test
