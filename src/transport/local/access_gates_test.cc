#include "transport/local/access_gates.h"

#include <gtest/gtest.h>

#include <memory>

namespace verbena {
namespace {

TEST(AccessGatesTest, AGateIsOpenWhileItsPeerIsInside) {
  const auto gates = std::make_unique<AccessGates>();
  EXPECT_FALSE(AccessGates::is_open(gates->look(3)));
  const u32 look = gates->pass_in(3).look;
  EXPECT_EQ(gates->look(3), look);
  EXPECT_TRUE(AccessGates::is_open(look));
  EXPECT_FALSE(AccessGates::is_open(gates->look(4)));
  gates->pass_out(3, look);
  EXPECT_FALSE(AccessGates::is_open(gates->look(3)));
  gates->pass_in(3);  // again: who waited for the first time need wait no more
  EXPECT_NE(gates->look(3), look);
  EXPECT_TRUE(AccessGates::is_open(gates->look(3)));
}

TEST(AccessGatesTest, TheGateOfOneThatEndedInsideCanBeShut) {
  const auto gates = std::make_unique<AccessGates>();
  gates->pass_in(3);
  gates->shut(3);
  EXPECT_FALSE(AccessGates::is_open(gates->look(3)));
}

// A peer that was stopped inside goes on, and leaves a gate that is shut. It is open again only
// while the peer is inside.
TEST(AccessGatesTest, TheGateOfOneThatWasStoppedInsideStaysRight) {
  const auto gates = std::make_unique<AccessGates>();
  const AccessGates::Entry stopped = gates->pass_in(3);
  gates->shut(3);
  gates->shut(3);
  EXPECT_NE(gates->look(3), stopped.look);
  gates->pass_out(3, stopped.look);
  EXPECT_FALSE(AccessGates::is_open(gates->look(3)));
  const AccessGates::Entry again = gates->pass_in(3);
  EXPECT_TRUE(AccessGates::is_open(gates->look(3)));
  EXPECT_NE(again.look, stopped.look);
  gates->pass_out(3, again.look);
  EXPECT_FALSE(AccessGates::is_open(gates->look(3)));
}

}  // namespace
}  // namespace verbena
