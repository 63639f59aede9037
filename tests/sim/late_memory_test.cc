// The same work as on plain memory, with memory whose copies end late and out of order, from a
// seed: everything completes once, in order, and memory is as the plain model says.
#include <gtest/gtest.h>

#include "tests/sim/rc_workload.h"
#include "tests/sim/seeds.h"
#include "tests/sim/unreliable_workload.h"

namespace verbena::sim {
namespace {

constexpr Duration kLongEnough = sec(1000);

class LateMemoryFabric : public ::testing::TestWithParam<u64> {};

TEST_P(LateMemoryFabric, ReliableConnections) {
  World world(GetParam());
  world.use_late_memory();
  RCWorkload work(world, RCPlan::draw(world.prng()));
  EXPECT_EQ(work.run(kLongEnough), std::nullopt) << world.report();
}

TEST_P(LateMemoryFabric, ExtendedReliableConnections) {
  World world(GetParam());
  world.use_late_memory();
  RCWorkload work(world, RCPlan::draw_xrc(world.prng()));
  EXPECT_EQ(work.run(kLongEnough), std::nullopt) << world.report();
}

TEST_P(LateMemoryFabric, SelectiveRepeat) {
  World world(GetParam());
  world.use_late_memory();
  PRNG& prng = world.prng();
  RCPlan plan = RCPlan::draw(prng);
  RCWorkload work(world, RCPlan::with_selective_repeat(std::move(plan), prng));
  EXPECT_EQ(work.run(kLongEnough), std::nullopt) << world.report();
}

TEST_P(LateMemoryFabric, UnreliableConnectionsAndDatagrams) {
  for (const QPType type : {QPType::kUC, QPType::kUD}) {
    World world(GetParam());
    world.use_late_memory();
    UnreliablePlan plan = UnreliablePlan::draw(world.prng(), type);
    plan.calm = false;  // memory that is too slow loses messages, as a card does
    UnreliableWorkload work(world, plan);
    EXPECT_EQ(work.run(kLongEnough), std::nullopt) << world.report();
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, LateMemoryFabric, ::testing::ValuesIn(seeds(4)), seed_name);

}  // namespace
}  // namespace verbena::sim
