#include "jobs/program/program.h"

#include <gtest/gtest.h>

#include "collectives/testing.h"

namespace verbena::jobs {
namespace {

using collectives::Action;
using collectives::Algorithm;
using collectives::ArrayRun;
using collectives::Shape;
using collectives::Step;

Shape all_reduce(u32 ranks, u64 bytes) {
  return {.operation = collectives::Operation::kAllReduce,
          .algorithm = Algorithm::kRing,
          .ranks = ranks,
          .bytes = bytes,
          .channels = 2,
          .chunk_bytes = 64};
}

Task computes(Duration lasts, std::vector<u32> after = {}) {
  return {.name = "computes", .lasts = lasts, .after = std::move(after)};
}

Task operates(u32 communicator, u32 operation, std::vector<u32> after = {}) {
  return {.name = "operates",
          .purpose = Purpose::kData,
          .communicator = communicator,
          .operation = operation,
          .after = std::move(after)};
}

// Four ranks in nodes of two: sums within nodes, then between equal ranks of the nodes.
ProgramParts two_dimensions() {
  ProgramParts parts;
  parts.ranks = 4;
  parts.communicators.emplace_back("within", std::vector<std::vector<u32>>{{0, 1}, {2, 3}}, 4, 2);
  parts.communicators.emplace_back("between", std::vector<std::vector<u32>>{{0, 2}, {1, 3}}, 4, 2);
  parts.operations = {{0, all_reduce(2, 400)}, {1, all_reduce(2, 400)}};
  parts.tasks = {{computes(us(3)), operates(0, 0, {0}), operates(1, 1, {1}), computes(us(5), {2}),
                  operates(0, 0, {3})}};
  parts.role_of = {0, 0, 0, 0};
  return parts;
}

TEST(CommunicatorTest, KnowsWhichMembersShareANode) {
  const std::vector<std::vector<u32>> all = {{0, 1, 2, 3, 4, 5, 6, 7}};
  EXPECT_EQ(Communicator("all", all, 8, 4).members_per_node(), 4u);
  EXPECT_EQ(Communicator("rails", {{0, 4}, {1, 5}}, 8, 4).members_per_node(), 1u);
  EXPECT_EQ(Communicator("node", {{0, 1, 2, 3}}, 8, 4).members_per_node(), 4u);
  EXPECT_EQ(Communicator("half nodes", {{0, 1, 4, 5}}, 8, 4).members_per_node(), 2u);
}

TEST(ProgramTest, DoesOperationsInTheirOrder) {
  const Program program(two_dimensions());
  for (u64 seed = 0; seed < 50; ++seed) {
    // Sums within nodes, between them, and within again.
    ArrayRun run(program, 400, seed, 1);
    for (u32 rank = 0; rank < 4; ++rank)
      std::fill(run.memory[rank].begin(), run.memory[rank].end(), static_cast<u8>(rank + 1));
    ASSERT_TRUE(run.run()) << seed;
    for (u32 rank = 0; rank < 4; ++rank)
      for (const u8 value : run.memory[rank]) ASSERT_EQ(value, 2 * (1 + 2 + 3 + 4)) << rank;
  }
}

TEST(ProgramTest, MarksWhereTasksBeginAndEnd) {
  const Program program(two_dimensions());
  std::vector<u32> begins(5), ends(5);
  for (u32 lane = 0; lane < program.lanes(); ++lane)
    for (u64 i = 0; i < program.steps(1, lane); ++i) {
      const std::optional<Program::Mark> mark = program.mark_at(1, lane, i);
      if (!mark) continue;
      if (mark->kind != Program::Mark::Kind::kEnds) ++begins[mark->task];
      if (mark->kind != Program::Mark::Kind::kBegins) ++ends[mark->task];
    }
  EXPECT_EQ(begins, (std::vector<u32>{1, 2, 2, 1, 2}));  // operations: on two channels
  EXPECT_EQ(ends, begins);
  EXPECT_EQ(program.computing_of(1), us(8));
}

TEST(ProgramTest, StepsWaitForWhatTheirTaskComesAfter) {
  const Program program(two_dimensions());
  // The first of each lane of the first operation comes after the first task that computes.
  for (u32 lane = 1; lane <= 2; ++lane) {
    const Step first = program.step(0, lane, 0);
    EXPECT_EQ(first.action, Action::kCompute);
    EXPECT_EQ(first.lasts, Duration());
    EXPECT_EQ(first.after, (collectives::After{0, 1}));
  }
}

}  // namespace
}  // namespace verbena::jobs
