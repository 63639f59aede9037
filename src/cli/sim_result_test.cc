#include "cli/sim_result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include <nlohmann/json.hpp>

namespace verbena::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

SimResult result_with(const std::vector<std::string>& expectations) {
  SimResult result;
  result.title = "kmin=<20k>";
  result.lines = {{"FCT p99", "3 ms"}};
  result.metrics = {{"drops", 3},
                    {"fct.p99", 0.003},
                    {"goodput", 98e9},
                    {"outcome", NAN, "complete"},
                    {"fairness"}};
  const auto read = expectations_of(expectations);
  EXPECT_TRUE(read.has_value()) << read.error().message;
  judge(*read, result);
  return result;
}

TEST(Expectations, HaveUnitsAndComparisons) {
  EXPECT_THAT(
      result_with({"drops == 3", "drops>=3", "fct.p99 < 4ms", "fct.p99 <= 3ms", "goodput > 97Gbps",
                   "outcome == complete", "outcome != stalled", "drops != 2"})
          .unmet,
      ElementsAre());
  EXPECT_THAT(result_with({"drops == 0", "fct.p99 < 2ms", "outcome == stalled"}).unmet,
              ElementsAre("drops == 0: it is 3", "fct.p99 < 2ms: it is 0.003",
                          "outcome == stalled: it is complete"));
}

// An expectation about a value that the result lacks is not met, for < and for >.
TEST(Expectations, OfWhatIsNotThereAreNotMet) {
  EXPECT_EQ(result_with({"fairness < 1", "fairness > 0"}).unmet.size(), 2u);
}

TEST(Expectations, ThatAreNoneAreRefused) {
  for (const std::string text :
       {"drops", "drops =", "== 3", "drops == many?", "fct < 3 apples", ""}) {
    const auto read = expectations_of({text});
    ASSERT_FALSE(read.has_value()) << text;
    EXPECT_EQ(read.error().exit_status, kExitCannot);
  }
  const auto read = expectations_of({"dorps == 0"});
  ASSERT_TRUE(read.has_value());
  const std::vector<fabric::Metric> metrics = {{"drops", 0}};
  EXPECT_THAT(check_names(*read, metrics).error().message, HasSubstr("there is no dorps"));
}

TEST(SimResult, IsJSON) {
  const auto json = nlohmann::json::parse(json_of(result_with({"drops == 0"})));
  EXPECT_EQ(json["metrics"]["drops"], 3);
  EXPECT_EQ(json["metrics"]["outcome"], "complete");
  EXPECT_TRUE(json["metrics"]["fairness"].is_null());
  EXPECT_EQ(json["summary"]["FCT p99"], "3 ms");
  EXPECT_EQ(json["unmet"][0], "drops == 0: it is 3");
  const auto runs = nlohmann::json::parse(json_of(std::vector{result_with({}), result_with({})}));
  EXPECT_EQ(runs["runs"].size(), 2u);
}

TEST(SimResult, IsJUnit) {
  const std::string xml =
      junit_of("a & b", {result_with({"drops == 0", "fct.p99 < 1s"}), result_with({})});
  EXPECT_THAT(xml, HasSubstr("<testsuite name=\"a &amp; b\" tests=\"3\" failures=\"1\">"));
  EXPECT_THAT(xml, HasSubstr("classname=\"kmin=&lt;20k&gt;\" name=\"drops == 0\"><failure"));
  EXPECT_THAT(xml, HasSubstr("name=\"fct.p99 &lt; 1s\"/>"));
  EXPECT_THAT(xml, HasSubstr("name=\"runs\"/>"));
}

}  // namespace
}  // namespace verbena::cli
