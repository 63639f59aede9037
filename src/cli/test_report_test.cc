#include "cli/test_report.h"

#include <gmock/gmock.h>

namespace verbena::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TestOutcome two(int first, int second) {
  return {
      .programs = {{.host = 0, .command = {"./server"}, .status = first, .seconds = 2},
                   {.host = 1, .command = {"./client", "a<b"}, .status = second, .seconds = 1}}};
}

TEST(TestReport, TheStatusIsOfTheProgramThatFailedFirst) {
  EXPECT_EQ(two(0, 0).exit_status(), 0);
  EXPECT_EQ(two(3, 0).exit_status(), 3);
  EXPECT_EQ(two(3, 139).exit_status(), 139);
}

TEST(TestReport, WhatWasToldToEndHasNotFailed) {
  TestOutcome outcome = two(143, 0);
  EXPECT_EQ(outcome.exit_status(), 143);
  outcome.programs[0].was_told = true;
  EXPECT_EQ(outcome.exit_status(), 0);
  outcome.timed_out = true;
  EXPECT_EQ(outcome.exit_status(), 124);
  EXPECT_THAT(text_of(outcome), HasSubstr("host 0: the time was over: ./server\n"));
  outcome.was_interrupted = true;
  EXPECT_EQ(outcome.exit_status(), 130);
}

TEST(TestReport, SaysWhichFailed) {
  TestOutcome crashed = two(0, 139);
  crashed.programs[1].signal = 11;
  EXPECT_EQ(text_of(two(0, 0)), "verbena test: passed on 2 hosts\n");
  EXPECT_EQ(text_of(crashed),
            "verbena test: host 1: signal 11: ./client a<b\nverbena test: failed on 2 hosts\n");
  EXPECT_THAT(text_of(two(0, 255)), HasSubstr("host 1: exit status 255: "));
}

TEST(TestReport, JUnitHasACaseForEachHost) {
  TestOutcome outcome = two(0, 5);
  outcome.programs[1].output = "wrong: \x1b[1m&\n";
  const std::string xml = junit_of("my \"test\"", outcome);
  EXPECT_THAT(xml,
              HasSubstr("<testsuite name=\"my &quot;test&quot;\" tests=\"2\" failures=\"1\">"));
  EXPECT_THAT(xml, HasSubstr("name=\"host 1: ./client a&lt;b\" time=\"1.000\""));
  EXPECT_THAT(xml, HasSubstr("<failure message=\"exit status 5\"/>"));
  EXPECT_THAT(xml, HasSubstr("wrong: ?[1m&amp;\n"));
  EXPECT_THAT(junit_of("x", two(0, 0)), Not(HasSubstr("<failure")));
}

}  // namespace
}  // namespace verbena::cli
