// Steps, and their operations' bandwidth, against what the links carry.
#include "jobs/step_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jobs/job_for_test.h"
#include "jobs/step_report.h"

namespace verbena::jobs {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kCluster =
    "topology: {kind: rail_optimized, nodes: 4, rails: 4, spines: 4}\n"
    "links: {rate: 400Gbps, delay: 500ns}\nhosts: {congestion_control: off}\n";
constexpr double kLine = 400e9 / 8 * 4096 / (4096 + 62);  // bytes a second of payload

StepResult step_of(const std::string& section, Job& job) {
  auto read = test::job_of(kCluster + section, {});
  EXPECT_TRUE(read.has_value()) << read.error().message;
  job = *std::move(read);
  StepResult result = run_step(job, [](const Progress&) { return false; });
  EXPECT_EQ(result.mistake, "");
  return result;
}

const OperationTotal& only(const StepResult& result, Purpose purpose) {
  const OperationTotal* found = nullptr;
  for (const OperationTotal& total : result.operations)
    if (total.purpose == purpose) found = &total;
  EXPECT_NE(found, nullptr);
  return *found;
}

// The instances that decode are there from the start, and wait until a layer is computed. The
// transfer itself goes at the line's rate.
TEST(StepOperations, ATransferOfTheKVCacheTakesWhatTheLinkTakes) {
  for (const std::string_view method : {"packets", "flows"}) {
    Job job;
    const StepResult result = step_of(
        "inference: {model: {layers: 8}, tensor: 4, serving: disaggregated, output: 2, "
        "prompt: 2048, method: " +
            std::string(method) + "}",
        job);
    const OperationTotal& total = only(result, Purpose::kCacheMove);
    EXPECT_GT(total.bus_bandwidth, 0.93 * kLine) << method;
    EXPECT_LE(total.bus_bandwidth, kLine) << method;
    EXPECT_GT(total.waiting, total.mean) << method;
    EXPECT_THAT(text_of(job, result), HasSubstr("send receive   direct"));
    EXPECT_THAT(text_of(job, result), Not(HasSubstr("broadcast")));
  }
}

// Stages wait for each other; what they send to each other takes what the link takes.
TEST(StepOperations, AStageSendsActivationsAtTheLinesRate) {
  Job job;
  const StepResult result = step_of(
      "training: {model: {layers: 4}, tensor: 4, pipeline: 4, sequence: 4096, batch: 16}", job);
  const OperationTotal& total = only(result, Purpose::kPipeline);
  EXPECT_GT(total.bus_bandwidth, 0.9 * kLine);
  EXPECT_LE(total.bus_bandwidth, kLine);
}

// Computing beside it, that differs, is no part of an all reduce.
TEST(StepOperations, WaitingIsNoPartOfAnOperation) {
  Job job;
  const StepResult result =
      step_of("training: {model: {layers: 2}, tensor: 4, sequence: 1024}", job);
  for (const OperationTotal& total : result.operations) {
    EXPECT_GE(total.waiting, Duration());
    EXPECT_GT(total.mean, Duration());
    EXPECT_GT(total.bus_bandwidth, 0);
  }
}

}  // namespace
}  // namespace verbena::jobs
