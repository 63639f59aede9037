#include "nvmf/target_stats.h"

#include <gtest/gtest.h>

namespace verbena::nvmf {
namespace {

TEST(TargetStats, TheTextComesBack) {
  const std::vector<SubsystemStats> all{{"nqn.a", {1, 2, 3, 4, 5}, 6}, {"nqn.b", {}, 0}};
  EXPECT_EQ(to_text(all), "verbena-nvmf 1\n1 2 3 4 5 6 nqn.a\n0 0 0 0 0 0 nqn.b\n");
  EXPECT_EQ(parse_stats(to_text(all)), all);
}

TEST(TargetStats, OtherTextsAreRefused) {
  for (const std::string_view text :
       {"", "verbena-nvmf 2\n", "verbena-nvmf 1\n1 2 3 4 5 nqn.a\n",
        "verbena-nvmf 1\n1 2 3 4 5 6 \n", "verbena-nvmf 1\n1 2 3 4 5 6 nqn.a",
        "verbena-nvmf 1\n-1 2 3 4 5 6 nqn.a\n",
        "verbena-nvmf 1\n99999999999999999999 2 3 4 5 6 nqn.a\n",
        "verbena-nvmf 1\n1 2 3 4 5 6 nqn.\x1b[2J \n"})
    EXPECT_FALSE(parse_stats(text).has_value()) << text;
}

TEST(TargetStats, TheTextIsBounded) {
  const std::vector<SubsystemStats> many(1000, {std::string(223, 'n'), {}, 0});
  EXPECT_LE(to_text(many).size(), kMaxStatsText);
  EXPECT_TRUE(parse_stats(to_text(many)).has_value());
}

}  // namespace
}  // namespace verbena::nvmf
