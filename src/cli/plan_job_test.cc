#include "cli/plan_job.h"

#include <stdlib.h>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/text_file.h"

namespace verbena::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr const char* kJob = R"(
topology: {kind: rail_optimized, nodes: 2, rails: 2, spines: 1}
links: {rate: 100Gbps, delay: 500ns}
hosts: {congestion_control: dcqcn}
infiniband: {vls: 2}
collective: {size: 256KiB, algorithm: ring}
)";

class PlanJobTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "verbena_plan_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    std::ofstream(folder_ / "job.yaml") << kJob;
    request_.job = (folder_ / "job.yaml").string();
    request_.technologies.assign(fabric::kTechnologies.begin(), fabric::kTechnologies.end());
    request_.threads = 2;
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_;
  PlanJobRequest request_;
};

TEST_F(PlanJobTest, ComparesRecommendsAndProves) {
  request_.output = (folder_ / "out").string();
  const Expected<SimOutcome> outcome = plan_job(request_);
  ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
  EXPECT_FALSE(outcome->was_interrupted);
  for (const char* const part : {"\nrocev2 ", "\ninfiniband ", "\niwarp ", "\ntcp ",
                                 "\nRecommended: ", "8 cores for each NIC", "  proven: "})
    EXPECT_THAT(outcome->output, HasSubstr(part));
  for (const char* const file :
       {"plan.txt", "results.sqlite", "tuning.txt", "sonic.json", "nvue.txt", "eos.txt", "nic.sh"})
    EXPECT_TRUE(fs::exists(folder_ / "out" / file)) << file;
  EXPECT_EQ(read_text(folder_ / "out" / "plan.txt").value_or(""), outcome->output);
}

TEST_F(PlanJobTest, ThreadsChangeNothing) {
  const Expected<SimOutcome> with_two = plan_job(request_);
  request_.threads = 1;
  const Expected<SimOutcome> with_one = plan_job(request_);
  ASSERT_TRUE(with_one && with_two);
  EXPECT_EQ(with_one->output, with_two->output);
}

TEST_F(PlanJobTest, TakesOtherTopologies) {
  std::ofstream(folder_ / "two_leaves.yaml")
      << "topology: {kind: leaf_spine, leaves: 2, hosts_per_leaf: 2, spines: 2}\n";
  request_.technologies = {fabric::Technology::kRoCEv2};
  request_.topologies = {"star", (folder_ / "two_leaves.yaml").string()};
  const Expected<SimOutcome> outcome = plan_job(request_);
  ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
  EXPECT_THAT(outcome->output, HasSubstr("\nrocev2 on star "));
  EXPECT_THAT(outcome->output, HasSubstr("\nrocev2 on two_leaves "));
}

TEST_F(PlanJobTest, RefusesInALine) {
  const auto refusal = [&](const PlanJobRequest& request) {
    const Expected<SimOutcome> outcome = plan_job(request);
    EXPECT_FALSE(outcome.has_value());
    return outcome ? "" : outcome.error().message;
  };
  PlanJobRequest wrong = request_;
  wrong.job = (folder_ / "none.yaml").string();
  EXPECT_THAT(refusal(wrong), HasSubstr("none.yaml"));
  std::ofstream(folder_ / "scenario.yaml") << "topology: star\nworkload: incast\n";
  wrong.job = (folder_ / "scenario.yaml").string();
  EXPECT_THAT(refusal(wrong), HasSubstr("is no job"));
  wrong = request_;
  wrong.topologies = {"torus"};
  EXPECT_THAT(refusal(wrong), HasSubstr("none of the kinds star"));
  wrong = request_;
  wrong.settings = {{"collective.algorithm", "nonsense"}};
  EXPECT_THAT(refusal(wrong), HasSubstr("nonsense"));
}

}  // namespace
}  // namespace verbena::cli
