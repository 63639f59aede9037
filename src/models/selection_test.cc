#include "models/selection.h"

#include <gtest/gtest.h>

#include "models/options.h"
#include "models/progress_bar.h"

namespace verbena::models {
namespace {

using Axis = transfer::Slice::Axis;

TEST(SelectionTest, SplitsLlamasLayersAsMegatronDoes) {
  const Selection selection{.part = 1, .parts = 2};
  EXPECT_EQ(selection.slice_of("model.layers.3.self_attn.q_proj.weight").axis, Axis::kRows);
  EXPECT_EQ(selection.slice_of("model.layers.3.mlp.down_proj.weight").axis, Axis::kColumns);
  EXPECT_EQ(selection.slice_of("model.layers.3.input_layernorm.weight").axis, Axis::kWhole);
  EXPECT_EQ(selection.slice_of("lm_head.weight").part, 1u);
  EXPECT_FALSE(selection.is_everything());
}

TEST(SelectionTest, GivenPatternsWin) {
  const Selection selection{
      .names = {"a*"}, .rows = {"*.down_proj.weight"}, .columns = {"w"}, .parts = 2};
  EXPECT_EQ(selection.slice_of("x.down_proj.weight").axis, Axis::kRows);
  EXPECT_EQ(selection.slice_of("w").axis, Axis::kColumns);
  EXPECT_TRUE(selection.takes("abc"));
  EXPECT_FALSE(selection.takes("bc"));
}

TEST(OptionsTest, ReadsValuesFlagsAndWords) {
  const std::vector<std::string> line = {"a", "--n", "4K", "--flag", "--n=5", "b"};
  const auto options = Options::read(line, {.values = {"--n"}, .flags = {"--flag"}});
  ASSERT_TRUE(options.has_value()) << options.error();
  EXPECT_EQ(options->words(), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(options->has("--flag"));
  EXPECT_EQ(options->all("--n"), (std::vector<std::string>{"4K", "5"}));
  EXPECT_EQ(*options->number("--n", 0, 1, 9), 5u);
  EXPECT_FALSE(options->number("--n", 0, 6, 9).has_value());
  EXPECT_EQ(*options->number("--m", 7, 1, 9), 7u);
}

TEST(OptionsTest, RefusesWhatItDoesNotKnow) {
  const OptionNames names{.values = {"--n"}, .flags = {"--flag"}};
  for (const std::vector<std::string>& line :
       {std::vector<std::string>{"--other"}, {"--n"}, {"--flag=1"}})
    EXPECT_FALSE(Options::read(line, names).has_value()) << line[0];
  EXPECT_EQ(read_size("3M"), u64{3} << 20);
  for (const char* const text : {"", "x", "3X", "-1", "99999999999G", "3MB"})
    EXPECT_EQ(read_size(text), std::nullopt) << text;
}

TEST(ProgressTest, TellsWhatIsLeft) {
  EXPECT_EQ(progress_text(u64{4} << 30, u64{8} << 30, 2),
            "[############------------]  50%  4.0 GiB of 8.0 GiB  2.15 GB/s  2 s left");
  EXPECT_EQ(progress_text(0, 0, 0), "[########################] 100%  0 B of 0 B  0.00 GB/s");
}

}  // namespace
}  // namespace verbena::models
