#include "coll/plan.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <deque>
#include <fstream>
#include <map>

#include "coll/scripts/direct.h"
#include "collectives/rank_executor.h"

namespace verbena::coll {
namespace {

constexpr Topology kOneNode{4, 4}, kFourNodes{4, 1}, kManyNodes{64, 1};

Call call_of(Kind kind, u64 count) {
  return {.kind = kind, .type = DataType::kFloat32, .count = count};
}

TEST(Plan, SizeAndPlaceDecide) {
  const auto name = [](Kind kind, u64 count, const Topology& topology) {
    return name_of(choose(call_of(kind, count), topology, {}));
  };
  EXPECT_EQ(name(Kind::kAllReduce, 2, kOneNode), "one-shot");
  EXPECT_EQ(name(Kind::kAllReduce, 1 << 20, kOneNode), "direct");
  EXPECT_EQ(name(Kind::kAllReduce, 2, kManyNodes), "halving-doubling");
  EXPECT_EQ(name(Kind::kAllReduce, 1 << 20, kManyNodes), "ring");
  EXPECT_EQ(name(Kind::kBroadcast, 1 << 20, kFourNodes), "ring");
  EXPECT_EQ(name(Kind::kAllToAll, 1 << 20, kManyNodes), "direct");
}

// Between two hosts an exchange of halves is one message each way; on one host it is cut, to be
// staged.
TEST(Plan, PartsAreCutOnOneHostOnly) {
  const auto chunk = [](const Topology& topology) {
    return choose(call_of(Kind::kAllReduce, 1u << 18), topology, {}).chunk_bytes;
  };
  EXPECT_GE(chunk({.ranks = 2, .ranks_per_node = 1}), 512u << 10);
  EXPECT_LE(chunk({.ranks = 2, .ranks_per_node = 2}), 256u << 10);
}

TEST(Plan, ForcedWhereItCan) {
  const Choice choice{.forced = Algorithm{*algorithm_number("double tree"), 0}};
  EXPECT_EQ(name_of(choose(call_of(Kind::kAllReduce, 8), kOneNode, choice)), "double-tree");
  EXPECT_EQ(name_of(choose(call_of(Kind::kAllGather, 8), kOneNode, choice)), "direct");
  EXPECT_FALSE(algorithm_number("fastest"));
}

TEST(Plan, TablesAreRead) {
  const std::string path = testing::TempDir() + "coll_table_test.txt";
  std::ofstream(path) << "# comment\nchoose AllReduce 4 1000 ring 512\n"
                         "choose AllReduce 4 100000 tree 0  # and more\nlatency_ns 5\n";
  const auto table = Table::read(path);
  ASSERT_TRUE(table) << table.error().text;
  EXPECT_EQ(table->find(Kind::kAllReduce, 4, 1000)->chunk_bytes, 512u);
  EXPECT_EQ(name_of(*table->find(Kind::kAllReduce, 4, 1001)), "tree");
  EXPECT_FALSE(table->find(Kind::kAllReduce, 4, 100001));
  EXPECT_FALSE(table->find(Kind::kAllReduce, 8, 1));
  std::ofstream(path) << "choose AllReduce 4 1000 fastest 512\n";
  EXPECT_NE(Table::read(path).error().text.find("line 1"), std::string::npos);
  EXPECT_FALSE(Table::read(path + ".none"));
  std::ofstream(path) << "cost copy 4096 80\n";
  EXPECT_NE(Table::read(path).error().text.find("is no table"), std::string::npos);
  EXPECT_FALSE(Table::read(testing::TempDir()));
  std::remove(path.c_str());
}

// Messages between ranks, in memory. A lane that finds none is asked again.
struct Wire {
  std::map<std::tuple<u32, u32, u32>, std::deque<u64>> messages{};
};
struct Rank {
  Wire& wire;
  u32 rank;
  u64 bytes_sent = 0, bytes_received = 0;
  std::vector<u32> waiting{};

  bool do_step(u32 lane, const collectives::Step& step) {
    auto& queue = wire.messages[step.action == collectives::Action::kSend
                                    ? std::tuple(rank, step.peer, lane)
                                    : std::tuple(step.peer, rank, lane)];
    if (step.action == collectives::Action::kSend) {
      queue.push_back(step.range.length);
      if (step.peer != rank) bytes_sent += step.range.length;
      return true;
    }
    if (queue.empty()) {
      waiting.push_back(lane);
      return false;
    }
    EXPECT_EQ(queue.front(), step.range.length);
    queue.pop_front();
    if (step.peer != rank) bytes_received += step.range.length;
    return true;
  }
  void on_step(u32, u64) {}
  void on_lane_wait(u32, u32) {}
  void on_lane_wake(u32, u32) {}
  void on_finish(u32) {}
};

// Every direct script ends, takes what is sent, and moves the bytes that its header says.
TEST(DirectScripts, MoveWhatTheyMust) {
  constexpr u32 kRanks = 5;
  constexpr u64 kCount = 1003, kBytes = kCount * 4;
  struct Expected {
    Kind kind;
    u64 bytes;  // received by all ranks together
  };
  for (const Expected& expected :
       {Expected{Kind::kAllReduce, 2 * kBytes * (kRanks - 1)},
        Expected{Kind::kReduceScatter, kBytes * kRanks * (kRanks - 1)},
        Expected{Kind::kAllGather, kBytes * kRanks * (kRanks - 1)},
        Expected{Kind::kAllToAll, kBytes * kRanks * (kRanks - 1)},
        Expected{Kind::kBroadcast, kBytes * (kRanks - 1)},
        Expected{Kind::kGather, kBytes * (kRanks - 1)},
        Expected{Kind::kScatter, kBytes * (kRanks - 1)}, Expected{Kind::kBarrier, 0}}) {
    const auto script =
        direct_script(call_of(expected.kind, kCount), {.ranks = kRanks, .chunk_bytes = 256});
    Wire wire;
    std::vector<collectives::RankExecutor> executors;
    std::vector<Rank> ranks;
    for (u32 rank = 0; rank < kRanks; ++rank) {
      executors.emplace_back(*script, rank);
      ranks.push_back({wire, rank});
      executors.back().start();
    }
    for (u64 before = ~u64{0}, done = 0; before != done;) {
      before = done;
      done = 0;
      for (u32 rank = 0; rank < kRanks; ++rank) {
        for (const u32 lane : std::exchange(ranks[rank].waiting, {})) executors[rank].wake(lane);
        executors[rank].run(ranks[rank]);
        done += executors[rank].steps_done();
      }
    }
    u64 received = 0;
    for (u32 rank = 0; rank < kRanks; ++rank) {
      EXPECT_TRUE(executors[rank].finished()) << name_of(expected.kind);
      received += ranks[rank].bytes_received;
    }
    EXPECT_EQ(received, expected.bytes) << name_of(expected.kind);
    for (const auto& [ends, messages] : wire.messages) EXPECT_TRUE(messages.empty());
  }
}

}  // namespace
}  // namespace verbena::coll
