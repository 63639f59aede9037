#include "jobs/loading/relay_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace verbena::jobs {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class RelayTreeOf : public testing::TestWithParam<u32> {};

TEST_P(RelayTreeOf, ReachesEachMemberOnce) {
  const u32 members = GetParam();
  const RelayTree tree(members);
  for (u32 root = 0; root < members; ++root) {
    std::vector<u32> reached{root};
    for (std::size_t i = 0; i < reached.size(); ++i)
      for (const u32 child : tree.children_of(reached[i], root)) {
        EXPECT_EQ(tree.parent_of(child, root), reached[i]);
        reached.push_back(child);
      }
    std::ranges::sort(reached);
    ASSERT_EQ(reached.size(), members);
    for (u32 member = 0; member < members; ++member) EXPECT_EQ(reached[member], member);
  }
}

TEST_P(RelayTreeOf, UsesNeighboursOnly) {
  const u32 members = GetParam();
  const RelayTree tree(members);
  for (u32 member = 0; member < members; ++member) {
    const std::vector<u32> neighbours = tree.neighbours_of(member);
    EXPECT_FALSE(std::ranges::binary_search(neighbours, member));
    for (u32 root = 0; root < members; ++root) {
      if (root != member) {
        EXPECT_TRUE(std::ranges::binary_search(neighbours, tree.parent_of(member, root)));
      }
      for (const u32 child : tree.children_of(member, root))
        EXPECT_TRUE(std::ranges::binary_search(neighbours, child));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, RelayTreeOf, testing::Values(1, 2, 7, 8, 9, 63, 64, 65, 100));

TEST(RelayTreeTest, SmallGroupsReadFromTheRoot) {
  const RelayTree tree(4);
  EXPECT_THAT(tree.children_of(2, 2), ElementsAre(3, 0, 1));
  EXPECT_THAT(tree.children_of(3, 2), IsEmpty());
  EXPECT_THAT(tree.neighbours_of(0), ElementsAre(1, 2, 3));
}

// 521 = 1011 in base 8: from 0 by 512, which comes last, 8 and 1.
TEST(RelayTreeTest, LargeGroupsHaveFewNeighbours) {
  const RelayTree tree(1024);
  EXPECT_EQ(tree.parent_of(521, 0), 9u);
  EXPECT_EQ(tree.parent_of(9, 0), 1u);
  EXPECT_EQ(tree.parent_of(1, 0), 0u);
  EXPECT_EQ(tree.children_of(0, 0).size(), 22u);
  EXPECT_LE(tree.neighbours_of(0).size(), 44u);
}

}  // namespace
}  // namespace verbena::jobs
