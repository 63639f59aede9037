#include "connect/comm_id_space.h"

#include <gtest/gtest.h>

#include <set>

namespace verbena {
namespace {

TEST(CommIdSpaceTest, EveryIDSaysWhoseItIs) {
  PRNG prng(1);
  for (const u16 slot : {u16{0}, u16{1}, u16{513}, kMaxProcessSlot}) {
    const CommIdSpace space{ProcessSlot{slot}};
    for (int i = 0; i < 1000; ++i) {
      const CommId id = space.draw(prng);
      EXPECT_EQ(process_slot_of(id), ProcessSlot{slot});
      EXPECT_NE(id.value & ((1u << kCommIdRandomBits) - 1), 0u);
    }
  }
}

TEST(CommIdSpaceTest, IDsAreHardToGuess) {
  PRNG prng(1);
  const CommIdSpace space{ProcessSlot{7}};
  std::set<u32> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(space.draw(prng).value);
  EXPECT_GT(seen.size(), 990u);
}

}  // namespace
}  // namespace verbena
