#include "host/sharing/layout_probe.h"

#include <gtest/gtest.h>

namespace verbena::host {
namespace {

std::vector<std::pair<u32, u32>> pairs(const LayoutProbe& probe) {
  std::vector<std::pair<u32, u32>> layout;
  for (const Steer& steer : probe.layout()) layout.emplace_back(steer.slot, steer.index);
  return layout;
}

TEST(LayoutProbeTest, CompleteWhenAllHaveAnswered) {
  LayoutProbe probe(1, 3);
  EXPECT_EQ(probe.unanswered(), (std::vector<u32>{0, 1, 2}));
  probe.on_answer({.nonce = 1, .index = 1, .slot = 40});
  EXPECT_EQ(probe.unanswered(), (std::vector<u32>{0, 2}));
  probe.on_answer({.nonce = 1, .index = 0, .slot = 50});
  EXPECT_FALSE(probe.is_complete());
  probe.on_answer({.nonce = 1, .index = 2, .slot = 60});
  EXPECT_TRUE(probe.is_complete());
  EXPECT_EQ(pairs(probe), (std::vector<std::pair<u32, u32>>{{40, 1}, {50, 0}, {60, 2}}));
}

TEST(LayoutProbeTest, BeyondTheEndAnyMemberAnswers) {
  LayoutProbe probe(1, 4);
  probe.on_answer({.nonce = 1, .index = 3, .slot = 50});
  probe.on_answer({.nonce = 1, .index = 0, .slot = 50});
  probe.on_answer({.nonce = 1, .index = 2, .slot = 40});
  probe.on_answer({.nonce = 1, .index = 1, .slot = 40});
  EXPECT_TRUE(probe.is_complete());
  EXPECT_EQ(pairs(probe), (std::vector<std::pair<u32, u32>>{{50, 0}, {40, 1}}));
}

TEST(LayoutProbeTest, LateForeignAndRepeatedAnswersDoNotCount) {
  LayoutProbe probe(1, 2);
  probe.on_answer({.nonce = 2, .index = 0, .slot = 50});
  probe.on_answer({.nonce = 1, .index = 2, .slot = 50});
  EXPECT_TRUE(probe.layout().empty());
  probe.on_answer({.nonce = 1, .index = 1, .slot = 50});
  probe.on_answer({.nonce = 1, .index = 1, .slot = 40});
  EXPECT_FALSE(probe.is_complete());
  EXPECT_EQ(pairs(probe), (std::vector<std::pair<u32, u32>>{{50, 1}}));
}

}  // namespace
}  // namespace verbena::host
