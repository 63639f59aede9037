// UC and UD over bad wires: whole or nothing, never garbage, never a byte outside.
#include <gtest/gtest.h>

#include "tests/sim/seeds.h"
#include "tests/sim/unreliable_workload.h"

namespace verbena::sim {
namespace {

class UCFabric : public ::testing::TestWithParam<u64> {};
class UDFabric : public ::testing::TestWithParam<u64> {};

TEST_P(UCFabric, AMessageArrivesWholeOrNotAtAll) {
  World world(GetParam());
  UnreliableWorkload work(world, UnreliablePlan::draw(world.prng(), QPType::kUC));
  EXPECT_EQ(work.run(sec(10)), std::nullopt) << world.report();
}

TEST_P(UDFabric, ADatagramArrivesWholeOrNotAtAll) {
  World world(GetParam());
  UnreliableWorkload work(world, UnreliablePlan::draw(world.prng(), QPType::kUD));
  EXPECT_EQ(work.run(sec(10)), std::nullopt) << world.report();
}

INSTANTIATE_TEST_SUITE_P(Seeds, UCFabric, ::testing::ValuesIn(seeds(2)), seed_name);
INSTANTIATE_TEST_SUITE_P(Seeds, UDFabric, ::testing::ValuesIn(seeds(2)), seed_name);

}  // namespace
}  // namespace verbena::sim
