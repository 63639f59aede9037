#include "host/local/late_gate.h"

#include <gtest/gtest.h>

#include <memory>

namespace verbena::host {
namespace {

constexpr u32 kGate = 7;

class LateGateTest : public testing::Test {
 protected:
  [[nodiscard]] bool is_open() const { return AccessGates::is_open(gates_->look(kGate)); }

  const std::unique_ptr<AccessGates> gates_ = std::make_unique<AccessGates>();
  LateGate gate_{*gates_, kGate};
};

TEST_F(LateGateTest, IsOpenAsLongAsSomebodyIsInside) {
  EXPECT_TRUE(gate_.enter());
  EXPECT_TRUE(gate_.enter());
  gate_.leave();
  EXPECT_TRUE(is_open());
  gate_.leave();
  EXPECT_FALSE(is_open());
  EXPECT_TRUE(gates_->has_visitors());
}

TEST_F(LateGateTest, ClosesAfterAWithdrawalBeforeItOpensAgain) {
  EXPECT_TRUE(gate_.enter());
  const u32 look = gates_->look(kGate);
  gates_->on_withdrawn();
  EXPECT_FALSE(gate_.enter());
  EXPECT_EQ(gates_->look(kGate), look);
  gate_.leave();
  EXPECT_NE(gates_->look(kGate), look);
  EXPECT_TRUE(gate_.enter());
}

TEST_F(LateGateTest, StaysShutWhereThePeerHasShutIt) {
  EXPECT_TRUE(gate_.enter());
  gates_->shut(kGate);
  gate_.leave();
  EXPECT_FALSE(is_open());
}

TEST_F(LateGateTest, OpensAlthoughAProcessBeforeHasEndedInside) {
  (void)gates_->pass_in(kGate);
  EXPECT_TRUE(gate_.enter());
  EXPECT_TRUE(is_open());
  gate_.leave();
  EXPECT_FALSE(is_open());
}

}  // namespace
}  // namespace verbena::host
