#include "jobs/flow_level/flow_program.h"

#include <gtest/gtest.h>

#include "jobs/flow_level/rank_classes.h"
#include "jobs/job_file.h"
#include "jobs/job_results.h"
#include "jobs/job_run.h"
#include "jobs/step_run.h"

namespace verbena::jobs {
namespace {

constexpr const char* kCluster = R"(
topology: {kind: rail_optimized, nodes: 4, rails: 4, spines: 4}
links: {rate: 400Gbps, delay: 500ns}
)";

Job job_with(const std::string& section) {
  const auto job = read_job("job.yaml", kCluster + section, {}, nullptr);
  CHECK(job.has_value());
  return *job;
}

bool never(const Progress&) { return false; }

Program program_of(const Job& job) {
  return Program(training_step(*job.training, job.cluster.gpus_per_node, job.cutting),
                 Program::Asked::kTasks);
}

TEST(RankClasses, ReplicasAreAlike) {
  const Job job = job_with("training: {model: {layers: 2}, tensor: 4, sequence: 512}");
  const Program program = program_of(job);
  const RankClasses classes(program);
  EXPECT_EQ(classes.size(), 1u);
  EXPECT_EQ(classes.class_of(), std::vector<u32>(16, 0));
}

TEST(RankClasses, StagesAreNot) {
  const Job job = job_with("training: {model: {layers: 4}, tensor: 2, pipeline: 4, sequence: 512}");
  const Program program = program_of(job);
  const RankClasses classes(program);
  EXPECT_EQ(classes.size(), 4u);
  for (u32 rank = 0; rank < 16; ++rank) {
    EXPECT_EQ(classes.class_of()[rank], classes.class_of()[rank / 4 * 4]) << rank;
    EXPECT_EQ(classes.representative(classes.class_of()[rank]), rank / 4 * 4) << rank;
  }
}

// A chain of one operation after another on a network of its own is as long as they are together.
TEST(FlowProgram, OperationsOfACommunicatorFollowEachOther) {
  const Job job =
      job_with("training: {model: {layers: 2}, tensor: 1, sequence: 512, bucket: 1GiB}");
  const Program program = program_of(job);
  const FlowProgramResult result =
      run_flow_program(program, job.cluster, job.plan.topology, {}, never);
  ASSERT_EQ(result.mistake, "");
  const std::vector<Task>& tasks = program.tasks_of(0);
  const std::vector<Span>& spans = result.spans.spans[0];
  Time free;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].computes()) continue;
    EXPECT_GE(spans[i].begin, free);
    free = spans[i].end;
  }
  EXPECT_EQ(result.time, std::ranges::max(spans, {}, &Span::end).end - Time());
}

struct Compared {
  const char* section;
  double error;  // at most
};
class AgainstPackets : public testing::TestWithParam<Compared> {};

TEST_P(AgainstPackets, AgreesWithinItsError) {
  const Job job = job_with(GetParam().section);
  const StepResult result = run_step(job, never);
  ASSERT_EQ(result.mistake, "");
  ASSERT_TRUE(result.flow_time.has_value());
  EXPECT_NEAR(result.flow_time->seconds() / result.time().seconds(), 1, GetParam().error);
}

// Between stages activations and gradients go beside each other, which flow-level knows not.
INSTANTIATE_TEST_SUITE_P(
    Steps, AgainstPackets,
    testing::Values(
        Compared{"training: {model: {layers: 2, vocabulary: 4096}, tensor: 4, sequence: 1024, "
                 "method: both}",
                 0.03},
        Compared{"training: {model: {layers: 4}, tensor: 2, pipeline: 4, sequence: 1024, "
                 "method: both}",
                 0.08},
        Compared{"training: {model: {layers: 2, vocabulary: 4096}, tensor: 4, sequence: 1024, "
                 "sharding: full, "
                 "method: both}",
                 0.035},
        Compared{"inference: {model: {layers: 4}, tensor: 4, serving: disaggregated, output: 4, "
                 "prompt: 512, method: both}",
                 0.02}));

TEST(FlowProgram, TheStepIsThatOfAllRanks) {
  const Job job = job_with(
      "training: {model: {layers: 4}, tensor: 2, pipeline: 4, sequence: 1024, method: flows}");
  const StepResult result = run_step(job, never);
  ASSERT_EQ(result.mistake, "");
  u32 all = 0;
  for (const Timeline::Sample& sample : result.timeline->samples()) all += sample.stands_for;
  EXPECT_EQ(all, 16u);
  Duration spent;
  for (std::size_t i = 0; i < kPurposes; ++i)
    spent = spent + result.mean.computing[i] + result.mean.idle[i];
  EXPECT_NEAR(spent.seconds() / result.time().seconds(), 1, 1e-6);
}

TEST(FlowProgram, StopsWhenAsked) {
  const Job job =
      job_with("training: {model: {layers: 2}, tensor: 4, sequence: 512, method: flows}");
  EXPECT_EQ(run_step(job, [](const Progress&) { return true; }).mistake, kInterrupted);
}

// The error bar of a figure at flow-level is a smaller job's, done both ways.
TEST(FlowLevelError, IsThatOfASmallerJob) {
  const auto job =
      read_job("job.yaml",
               "topology: {kind: rail_optimized, nodes: 64, rails: 4, spines: 8}\n"
               "links: {rate: 400Gbps, delay: 200ns}\nhosts: {congestion_control: off}\n"
               "collective: {size: 64MiB, algorithm: [rail ring, halving doubling], "
               "method: flows}\n",
               {}, nullptr);
  ASSERT_TRUE(job.has_value()) << job.error().message;
  for (const collectives::Shape& shape : job->shapes) {
    const CollectiveResult result = run_collective(*job, shape, never);
    ASSERT_TRUE(result.flow_error.has_value());
    EXPECT_EQ(result.flow_error->gpus, 64u);
    EXPECT_EQ(result.flow_error->bytes, 16u << 20);
    EXPECT_LT(std::abs(result.flow_error->error), 0.12) << name_of(shape.algorithm);
  }
  const std::string text = text_of(*job, run_job(*job, never).collectives);
  EXPECT_NE(text.find("error: of its time, as on 64 GPUs with 16.78 MB by packets"),
            std::string::npos)
      << text;
}

TEST(FlowLevelError, OfAStepIsThatOfTwoReplicasWithALayerForEachStage) {
  const Job job = job_with(
      "training: {model: {layers: 8}, tensor: 2, pipeline: 2, sequence: 1024, method: flows}");
  const StepResult result = run_step(job, never);
  ASSERT_EQ(result.mistake, "");
  ASSERT_TRUE(result.flow_error.has_value());
  EXPECT_EQ(result.flow_error->gpus, 8u);
  EXPECT_LT(std::abs(result.flow_error->error), 0.15);
}

}  // namespace
}  // namespace verbena::jobs
