#include "transfer/request_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace verbena::transfer {
namespace {

using testing::HasSubstr;

TEST(RequestTraceTest, ReadsMooncakesFormat) {
  const auto trace = RequestTrace::parse(
      "{\"timestamp\": 27, \"input_length\": 1000, \"output_length\": 5, \"hash_ids\": [7, 9]}\n\n"
      "{\"timestamp\": 3, \"input_length\": 6758, \"output_length\": 500, \"hash_ids\": []}");
  ASSERT_TRUE(trace.has_value()) << trace.error();
  ASSERT_EQ(trace->requests.size(), 2u);
  EXPECT_EQ(trace->requests[0].arrival_ms, 0u);
  EXPECT_EQ(trace->requests[1], (TracedRequest{24, 1000, 5, {7, 9}}));
}

TEST(RequestTraceTest, CountsFromTheFirstRequest) {
  const std::string end = ", \"input_length\": 9, \"output_length\": 5}\n";
  const auto trace = RequestTrace::parse("{\"timestamp\": 1732788000250" + end +
                                         "{\"timestamp\": 1732788000000" + end);
  ASSERT_TRUE(trace.has_value()) << trace.error();
  EXPECT_EQ(trace->requests[0].arrival_ms, 0u);
  EXPECT_EQ(trace->requests[1].arrival_ms, 250u);
}

TEST(RequestTraceTest, NamesTheLineThatIsWrong) {
  const std::string good = "{\"timestamp\": 27, \"input_length\": 1000, \"output_length\": 5}\n";
  EXPECT_THAT(RequestTrace::parse(good + "{").error(), HasSubstr("line 2"));
  EXPECT_THAT(
      RequestTrace::parse("{\"timestamp\": 27, \"input_length\": 0, \"output_length\": 5}").error(),
      HasSubstr("not possible"));
  EXPECT_THAT(RequestTrace::parse("{\"timestamp\": 1.5}").error(), HasSubstr("whole numbers"));
  EXPECT_THAT(RequestTrace::parse("{\"timestamp\": 1, \"input_length\": 5, \"output_length\": 5, "
                                  "\"hash_ids\": [1, 2]}")
                  .error(),
              HasSubstr("more hash IDs"));
  EXPECT_THAT(RequestTrace::parse("\n").error(), HasSubstr("no request"));
}

}  // namespace
}  // namespace verbena::transfer
