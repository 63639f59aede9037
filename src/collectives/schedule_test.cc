// Every schedule, done on arrays: its result, and what it sends against the closed form.
#include "collectives/schedule.h"

#include <gtest/gtest.h>

#include <bit>
#include <numeric>
#include <set>
#include <string>

#include "collectives/binary_tree.h"
#include "collectives/make_schedule.h"
#include "collectives/ring_order.h"
#include "collectives/testing.h"

namespace verbena::collectives {
namespace {

u8 value_of(u32 rank, u64 place) { return static_cast<u8>(rank * 151 + place * 7 + place / 251); }

u8 sum_of(u32 ranks, u64 place) {
  u8 sum = 0;
  for (u32 rank = 0; rank < ranks; ++rank) sum = static_cast<u8>(sum + value_of(rank, place));
  return sum;
}

// Writes the initial memory of the ranks: their input, and for AllToAll the block that a rank keeps
// for itself.
void fill(const Schedule& schedule, ArrayRun& run) {
  const Shape& shape = schedule.shape();
  const u64 block = shape.bytes / shape.ranks;
  for (u32 rank = 0; rank < schedule.ranks(); ++rank) {
    const Range input = schedule.input(rank);
    for (u64 i = input.offset; i < input.end(); ++i) run.memory[rank][i] = value_of(rank, i);
    if (shape.operation != Operation::kAllToAll) continue;
    for (u64 i = rank * block; i < (rank + 1) * block; ++i)
      run.memory[rank][schedule.output(rank).offset + i] = value_of(rank, i);
  }
}

// Returns the value at place i of a rank's output, counted from the start of the output.
u8 expected(const Shape& shape, u32 rank, u64 offset, u64 i) {
  switch (shape.operation) {
    case Operation::kAllReduce: return sum_of(shape.ranks, i);
    case Operation::kReduceScatter: return sum_of(shape.ranks, offset + i);
    case Operation::kBroadcast: return value_of(shape.root, i);
    case Operation::kSendReceive: return value_of((rank + shape.ranks - 1) % shape.ranks, i);
    case Operation::kAllToAll: {
      const u64 block = shape.bytes / shape.ranks;
      return value_of(static_cast<u32>(i / block), rank * block + i % block);
    }
    case Operation::kAllGather: {
      u32 owner = 0;
      while (part({0, shape.bytes}, shape.ranks, owner, shape.element_bytes).end() <= i) ++owner;
      return value_of(owner, i);
    }
  }
  return 0;
}

std::string words(const Shape& shape) {
  return std::string(name_of(shape.operation)) + " by " + std::string(name_of(shape.algorithm)) +
         ", " + std::to_string(shape.ranks) + " ranks in nodes of " +
         std::to_string(shape.ranks_per_node) + ", " + std::to_string(shape.bytes) + " bytes, " +
         std::to_string(shape.channels) + " channels, chunks of " +
         std::to_string(shape.chunk_bytes);
}

void check(const Shape& asked) {
  SCOPED_TRACE(words(asked));
  const auto schedule = make_schedule(asked);
  const Shape& shape = schedule->shape();
  for (const std::size_t window : {std::size_t{1}, std::size_t{8}}) {
    ArrayRun run(*schedule, asked.bytes + window, window);
    fill(*schedule, run);
    ASSERT_TRUE(run.run());
    for (u32 rank = 0; rank < shape.ranks; ++rank) {
      const Range output = schedule->output(rank);
      for (u64 i = 0; i < output.length; ++i)
        ASSERT_EQ(run.memory[rank][output.offset + i], expected(shape, rank, output.offset, i))
            << "rank " << rank << ", byte " << i;
    }
  }
}

// Ranks and GPUs per node: odd ones, primes, powers of two and their neighbours.
constexpr std::array<std::pair<u32, u32>, 18> kRanks = {{{2, 1},
                                                         {3, 1},
                                                         {4, 1},
                                                         {5, 1},
                                                         {7, 1},
                                                         {8, 1},
                                                         {13, 1},
                                                         {16, 1},
                                                         {17, 1},
                                                         {4, 2},
                                                         {6, 2},
                                                         {2, 2},
                                                         {9, 3},
                                                         {12, 4},
                                                         {16, 4},
                                                         {24, 8},
                                                         {32, 8},
                                                         {20, 4}}};

class EverySchedule : public testing::TestWithParam<std::pair<Operation, Algorithm>> {};

TEST_P(EverySchedule, EndsWithWhatItMust) {
  Shape shape{.operation = GetParam().first, .algorithm = GetParam().second};
  for (const auto& [ranks, gpus] : kRanks)
    for (const u64 elements : {u64{0}, u64{1}, u64{5}, u64{257}})
      for (const u32 channels : {1u, 3u})
        for (const u64 chunk : {u64{0}, u64{24}}) {
          shape.ranks = ranks;
          shape.ranks_per_node = gpus;
          shape.bytes = elements * 4;
          shape.channels = channels;
          shape.chunk_bytes = chunk;
          shape.root = ranks / 2;
          if (refusal(shape).empty()) check(shape);
          if (HasFatalFailure()) return;
        }
}

// `chunk` bounds the messages between nodes of what is a pipeline: parts of a range differ by one
// element. The other algorithms send what there is for a rank in a round as one message.
TEST_P(EverySchedule, SendsNoMessageBetweenNodesLongerThanTheChunk) {
  const Algorithm algorithm = GetParam().second;
  if (algorithm == Algorithm::kHalvingDoubling || algorithm == Algorithm::kDirect ||
      algorithm == Algorithm::kRailDirect)
    return;
  for (const auto& [ranks, gpus] : kRanks)
    for (const u32 channels : {1u, 3u}) {
      const Shape shape{.operation = GetParam().first,
                        .algorithm = algorithm,
                        .ranks = ranks,
                        .ranks_per_node = gpus,
                        .bytes = u64{ranks} * 4 * 1000,
                        .channels = channels,
                        .chunk_bytes = 256};
      if (!refusal(shape).empty()) continue;
      const auto schedule = make_schedule(shape);
      u64 longest = 0;
      for (u32 rank = 0; rank < ranks; ++rank)
        for (u32 lane = 0; lane < schedule->lanes(); ++lane)
          for (u64 index = 0; index < schedule->steps(rank, lane); ++index)
            if (const Step step = schedule->step(rank, lane, index);
                shape.node_of(rank) != shape.node_of(step.peer))
              longest = std::max(longest, step.range.length);
      EXPECT_LE(longest, shape.chunk_bytes + shape.element_bytes) << words(shape);
    }
}

// They are found in the first steps; here in all.
TEST_P(EverySchedule, SendsToItsReceivers) {
  for (const auto& [ranks, gpus] : kRanks) {
    const Shape shape{.operation = GetParam().first,
                      .algorithm = GetParam().second,
                      .ranks = ranks,
                      .ranks_per_node = gpus,
                      .bytes = u64{ranks} * 4 * 64,
                      .channels = 2,
                      .chunk_bytes = 24,
                      .root = ranks / 2};
    if (!refusal(shape).empty()) continue;
    const auto schedule = make_schedule(shape);
    for (u32 rank = 0; rank < ranks; ++rank)
      for (u32 lane = 0; lane < schedule->lanes(); ++lane) {
        std::set<u32> peers;
        for (u64 index = 0; index < schedule->steps(rank, lane); ++index)
          if (const Step step = schedule->step(rank, lane, index); step.action == Action::kSend)
            peers.insert(step.peer);
        const std::vector<u32> receivers = schedule->receivers(rank, lane);
        ASSERT_EQ(std::set(receivers.begin(), receivers.end()), peers) << words(shape);
        ASSERT_EQ(receivers.size(), peers.size());
      }
  }
}

std::vector<std::pair<Operation, Algorithm>> all_there_are() {
  std::vector<std::pair<Operation, Algorithm>> pairs;
  for (const Operation operation : kOperations)
    for (const Algorithm algorithm : kAlgorithms)
      if (refusal({.operation = operation, .algorithm = algorithm}).empty())
        pairs.emplace_back(operation, algorithm);
  return pairs;
}

INSTANTIATE_TEST_SUITE_P(Schedules, EverySchedule, testing::ValuesIn(all_there_are()),
                         [](const auto& pair) {
                           std::string name = std::string(name_of(pair.param.first)) + "_by_" +
                                              std::string(name_of(pair.param.second));
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

struct Sent {
  u64 messages = 0, most_by_a_rank = 0, all = 0;
};

Sent sent(const Shape& shape) {
  const auto schedule = make_schedule(shape);
  ArrayRun run(*schedule, 1, 8);
  EXPECT_TRUE(run.run());
  return {run.messages_sent, *std::ranges::max_element(run.bytes_sent),
          std::accumulate(run.bytes_sent.begin(), run.bytes_sent.end(), u64{0})};
}

constexpr u64 kSize = 32 * 8 * 12;  // bytes: all that follows divides it

TEST(WhatSchedulesSend, Rings) {
  for (const u32 n : {2u, 3u, 4u, 8u, 12u}) {
    for (const Operation operation : {Operation::kAllGather, Operation::kReduceScatter}) {
      const Sent once = sent({.operation = operation, .ranks = n, .bytes = kSize});
      EXPECT_EQ(once.messages, n * (n - 1));
      EXPECT_EQ(once.most_by_a_rank, kSize / n * (n - 1));
    }
    const Sent both = sent({.ranks = n, .bytes = kSize, .channels = 2});
    EXPECT_EQ(both.messages, 2 * n * 2 * (n - 1));
    EXPECT_EQ(both.most_by_a_rank, 2 * kSize / n * (n - 1));
    EXPECT_EQ(both.all, n * both.most_by_a_rank);
    const Sent broadcast = sent({.operation = Operation::kBroadcast, .ranks = n, .bytes = kSize});
    EXPECT_EQ(broadcast.most_by_a_rank, kSize);
    EXPECT_EQ(broadcast.all, (n - 1) * kSize);
  }
}

TEST(WhatSchedulesSend, Trees) {
  for (const u32 n : {2u, 3u, 4u, 7u, 8u, 24u}) {
    const Sent one = sent({.algorithm = Algorithm::kTree, .ranks = n, .bytes = kSize});
    EXPECT_EQ(one.messages, 2 * (n - 1));
    EXPECT_EQ(one.all, 2 * (n - 1) * kSize);
    EXPECT_LE(one.most_by_a_rank, 3 * kSize);
    // Inner node of one tree, leaf of the other: no rank has more than both roles.
    const Sent two = sent({.algorithm = Algorithm::kDoubleTree, .ranks = n, .bytes = kSize});
    EXPECT_EQ(two.messages, 4 * (n - 1));
    EXPECT_EQ(two.all, 2 * (n - 1) * kSize);
    EXPECT_LE(two.most_by_a_rank, 2 * kSize);
  }
}

TEST(WhatSchedulesSend, HalvingDoubling) {
  for (const u32 n : {2u, 4u, 8u, 16u}) {
    const u32 rounds = static_cast<u32>(std::countr_zero(n));
    const Sent s = sent({.algorithm = Algorithm::kHalvingDoubling, .ranks = n, .bytes = kSize});
    EXPECT_EQ(s.messages, n * 2 * rounds);
    EXPECT_EQ(s.most_by_a_rank, 2 * kSize / n * (n - 1));
  }
  // One rank outside of the core: one message of all there is to it and one from it.
  const Sent odd = sent({.algorithm = Algorithm::kHalvingDoubling, .ranks = 5, .bytes = kSize});
  EXPECT_EQ(odd.messages, 4 * 2 * 2 + 2);
  EXPECT_EQ(odd.most_by_a_rank, 2 * kSize / 4 * 3 + kSize);
}

TEST(WhatSchedulesSend, ToAllRanks) {
  const Sent direct = sent({.operation = Operation::kAllToAll,
                            .algorithm = Algorithm::kDirect,
                            .ranks = 12,
                            .bytes = kSize});
  EXPECT_EQ(direct.messages, 12 * 11);
  EXPECT_EQ(direct.most_by_a_rank, kSize / 12 * 11);
  const Sent next = sent({.operation = Operation::kSendReceive,
                          .algorithm = Algorithm::kDirect,
                          .ranks = 12,
                          .bytes = kSize});
  EXPECT_EQ(next.messages, 12u);
  EXPECT_EQ(next.most_by_a_rank, kSize);
}

// BetweenNodes: the traffic that leaves the nodes, and whether it changes the rail.
struct BetweenNodes {
  u64 bytes_of_a_gpu = 0;  // the most
  u64 messages = 0;
  u64 between_rails = 0;  // messages
};

BetweenNodes between_nodes(const Shape& shape) {
  const auto schedule = make_schedule(shape);
  BetweenNodes result;
  for (u32 rank = 0; rank < shape.ranks; ++rank) {
    u64 bytes = 0;
    for (u32 lane = 0; lane < schedule->lanes(); ++lane)
      for (u64 i = 0; i < schedule->steps(rank, lane); ++i) {
        const Step step = schedule->step(rank, lane, i);
        if (step.action != Action::kSend || shape.node_of(rank) == shape.node_of(step.peer))
          continue;
        bytes += step.range.length;
        ++result.messages;
        if (shape.local_of(rank) != shape.local_of(step.peer)) ++result.between_rails;
      }
    result.bytes_of_a_gpu = std::max(result.bytes_of_a_gpu, bytes);
  }
  return result;
}

TEST(BetweenNodes, HierarchicalSendsItsShard) {
  const Shape shape{
      .algorithm = Algorithm::kHierarchical, .ranks = 32, .ranks_per_node = 8, .bytes = kSize};
  const BetweenNodes ring = between_nodes(shape);
  EXPECT_EQ(ring.bytes_of_a_gpu, 2 * kSize / 8 / 4 * 3);
  EXPECT_EQ(ring.messages, 32 * 2 * 3);
  EXPECT_EQ(ring.between_rails, 0u);
  Shape tree = shape;
  tree.algorithm = Algorithm::kHierarchicalTree;
  EXPECT_LE(between_nodes(tree).bytes_of_a_gpu, 3 * kSize / 8);
  EXPECT_EQ(between_nodes(tree).between_rails, 0u);
}

// The number of nodes cuts a shard for the ring anyway; the chunk does not cut it again.
TEST(BetweenNodes, HierarchicalChunkIsOfTheMessage) {
  constexpr u64 kChunk = 512 * 1024;
  Shape shape{.algorithm = Algorithm::kHierarchical,
              .ranks_per_node = 8,
              .bytes = u64{1} << 30,
              .channels = 8,
              .chunk_bytes = kChunk};
  const auto longest = [&](u32 nodes) {
    shape.ranks = nodes * 8;
    return make_schedule(shape)->step(0, 1, 0).range.length;
  };
  EXPECT_EQ(longest(2), kChunk);
  EXPECT_EQ(longest(16), kChunk / 4);     // cut into eight pieces, so that the parts overlap
  EXPECT_EQ(longest(256), kChunk / 8);    // no shorter for that
  EXPECT_EQ(longest(2048), kChunk / 64);  // the segments that the nodes make of a shard of 16 MiB
}

TEST(BetweenNodes, RailsAreKept) {
  for (const u32 nodes : {1u, 2u, 3u, 4u, 5u, 8u})
    for (const u32 gpus : {3u, 4u, 8u}) {
      Shape shape{.algorithm = Algorithm::kRailRing,
                  .ranks = nodes * gpus,
                  .ranks_per_node = gpus,
                  .bytes = kSize,
                  .channels = gpus};
      EXPECT_EQ(between_nodes(shape).between_rails, 0u) << nodes << " nodes of " << gpus;
      shape.algorithm = Algorithm::kDoubleTree;
      EXPECT_EQ(between_nodes(shape).between_rails, 0u) << nodes << " nodes of " << gpus;
    }
  Shape plain{.ranks = 32, .ranks_per_node = 8, .bytes = kSize, .channels = 8};
  EXPECT_EQ(between_nodes(plain).between_rails, between_nodes(plain).messages);
  const BetweenNodes direct = between_nodes({.operation = Operation::kAllToAll,
                                             .algorithm = Algorithm::kRailDirect,
                                             .ranks = 32,
                                             .ranks_per_node = 8,
                                             .bytes = kSize});
  EXPECT_EQ(direct.between_rails, 0u);
  EXPECT_EQ(direct.bytes_of_a_gpu, kSize / 4 * 3);
}

// The ring of every channel visits each rank once, and no two channels leave a node by the same
// NIC.
TEST(RingOrder, VisitsEveryRankOnce) {
  const Shape shape{.algorithm = Algorithm::kRailRing, .ranks = 40, .ranks_per_node = 8};
  for (u32 channel = 0; channel < 8; ++channel) {
    const RingOrder order(shape, channel);
    for (u32 rank = 0; rank < 40; ++rank) EXPECT_EQ(order.rank_at(order.position_of(rank)), rank);
  }
  for (u32 a = 0; a < 8; ++a)
    for (u32 b = 0; b < a; ++b)
      EXPECT_NE(RingOrder(shape, a).rank_at(7), RingOrder(shape, b).rank_at(7));
}

TEST(BinaryTree, ParentsAndChildrenAgree) {
  for (u32 places = 1; places <= 70; ++places)
    for (const u32 tree : {0u, 1u}) {
      u32 roots = 0, edges = 0, inner_twice = 0;
      for (u32 place = 0; place < places; ++place) {
        const TreeNode node = tree_node(places, place, tree);
        roots += node.parent == TreeNode::kNone ? 1 : 0;
        edges += node.degree;
        for (const u32 child : node.children)
          if (child != TreeNode::kNone) {
            EXPECT_EQ(tree_node(places, child, tree).parent, place);
          }
        u32 depth = 0;
        for (u32 p = place; p != TreeNode::kNone && depth <= 8; ++depth)
          p = tree_node(places, p, tree).parent;
        EXPECT_LE(depth, std::bit_width(places - 1) + 1u);
        if (node.degree == 2 && tree_node(places, place, 1 - tree).degree == 2) ++inner_twice;
      }
      EXPECT_EQ(roots, 1u);
      EXPECT_EQ(edges, places - 1);
      EXPECT_EQ(inner_twice, 0u) << places;
    }
}

// Steps are computed: a million of them for each of a thousand ranks need no memory.
TEST(Schedules, AreNotStored) {
  const auto schedule = make_schedule(
      {.ranks = 1024, .bytes = u64{1} << 40, .channels = 64, .chunk_bytes = u64{1} << 14});
  EXPECT_EQ(schedule->steps(1023, 63), u64{2} * 2 * 1023 * 1024);
  const Step last = schedule->step(1023, 63, schedule->steps(1023, 63) - 1);
  EXPECT_EQ(last.action, Action::kCopy);
  EXPECT_EQ(last.peer, 1022u);
  EXPECT_EQ(last.range.length, u64{1} << 14);
}

TEST(Schedules, WhatCannotBeIsSaid) {
  EXPECT_EQ(refusal({.operation = Operation::kAllToAll}),
            "no all to all by ring: there is direct, rail direct");
  EXPECT_EQ(refusal({.ranks = 1}), "ranks: 2 to 1048576");
  EXPECT_EQ(refusal({.ranks = 12, .ranks_per_node = 8}),
            "12 ranks are no whole number of nodes of 8");
  EXPECT_EQ(refusal({.bytes = 6}), "a size of 6 bytes is no whole number of elements of 4");
  EXPECT_EQ(refusal({.channels = 0}), "channels: 1 to 64");
  EXPECT_EQ(refusal({.operation = Operation::kBroadcast, .root = 2}), "root: a rank, 0 to 1");
  EXPECT_EQ(refusal({}), "");
}

TEST(Schedules, NamesReadAsTheyAreWritten) {
  for (const Operation operation : kOperations)
    EXPECT_EQ(operation_named(name_of(operation)), operation);
  for (const Algorithm algorithm : kAlgorithms)
    EXPECT_EQ(algorithm_named(name_of(algorithm)), algorithm);
  EXPECT_EQ(operation_named("AllReduce"), Operation::kAllReduce);
  EXPECT_EQ(operation_named("all_reduce"), Operation::kAllReduce);
  EXPECT_EQ(algorithm_named("halving-doubling"), Algorithm::kHalvingDoubling);
  EXPECT_EQ(algorithm_named("bruck"), std::nullopt);
}

// nccl-tests, doc/PERFORMANCE.md
TEST(Schedules, BusBandwidthIsThatOfNCCLTests) {
  EXPECT_DOUBLE_EQ(bus_factor(Operation::kAllReduce, 8), 1.75);
  EXPECT_DOUBLE_EQ(bus_factor(Operation::kAllGather, 8), 0.875);
  EXPECT_DOUBLE_EQ(bus_factor(Operation::kReduceScatter, 8), 0.875);
  EXPECT_DOUBLE_EQ(bus_factor(Operation::kAllToAll, 8), 0.875);
  EXPECT_DOUBLE_EQ(bus_factor(Operation::kBroadcast, 8), 1);
}

}  // namespace
}  // namespace verbena::collectives
