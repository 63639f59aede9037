#include "transfer/list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace verbena::transfer {
namespace {

using testing::ElementsAre;

TEST(PairLists, SplitsAtTheBoundariesOfBothLists) {
  const std::vector<Block> local = {{100, 30, 0}, {500, 10, 1}};
  const std::vector<Block> remote = {{1000, 10, 7}, {0, 0, 7}, {2000, 30, 8}};
  const auto copies = pair_lists(local, remote);
  ASSERT_TRUE(copies.has_value()) << copies.error();
  EXPECT_THAT(*copies, ElementsAre(Copy{100, 1000, 10, 0, 7}, Copy{110, 2000, 20, 0, 8},
                                   Copy{500, 2020, 10, 1, 8}));
  EXPECT_EQ(bytes_of(*copies), 40u);
}

TEST(PairLists, JoinsWhatIsAdjacentOnBothSides) {
  const std::vector<Block> local = {{0, 4, 0}, {4, 4, 0}, {8, 4, 0}};
  const std::vector<Block> remote = {{64, 4, 0}, {68, 4, 0}, {80, 4, 0}};
  const auto copies = pair_lists(local, remote);
  ASSERT_TRUE(copies.has_value());
  EXPECT_THAT(*copies, ElementsAre(Copy{0, 64, 8, 0, 0}, Copy{8, 80, 4, 0, 0}));
}

TEST(PairLists, RefusesDifferentTotalsAndOverflow) {
  EXPECT_FALSE(pair_lists(std::vector<Block>{{0, 4, 0}}, std::vector<Block>{{0, 5, 0}}));
  const std::vector<Block> huge = {{0, ~u64{0}, 0}, {0, 5, 0}};
  EXPECT_FALSE(pair_lists(huge, huge));
  EXPECT_TRUE(pair_lists({}, {})->empty());
}

}  // namespace
}  // namespace verbena::transfer
