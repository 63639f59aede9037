#include "jobs/job_file.h"

#include <gtest/gtest.h>

#include "jobs/job_for_test.h"
#include "jobs/job_run.h"
#include "jobs/presets.h"

namespace verbena::jobs {
namespace {

using collectives::Algorithm;
using collectives::Operation;

using test::job_of;
using test::mistake_of;

constexpr const char* kRails = "topology: {kind: rail_optimized, nodes: 4, rails: 4}\n";

TEST(JobFile, ACollectiveMakesAJob) {
  EXPECT_TRUE(is_job("collective: all reduce"));
  EXPECT_TRUE(is_job("topology: star\ncollective: {}\n"));
  EXPECT_FALSE(is_job("topology: star\nworkload: incast\n"));
  EXPECT_FALSE(is_job("a: [b"));
  EXPECT_FALSE(is_job(""));
}

TEST(JobFile, WhatIsNotGiven) {
  const auto job = job_of(std::string(kRails) + "collective: all reduce");
  ASSERT_TRUE(job.has_value()) << job.error().message;
  EXPECT_EQ(job->cluster.ranks(), 16u);
  EXPECT_EQ(job->cluster.gpus_per_node, 4u);
  EXPECT_EQ(job->method, Method::kPackets);
  ASSERT_EQ(job->shapes.size(), 7u);  // all algorithms that there are
  EXPECT_EQ(job->shapes[0].bytes, 16u << 20);
  EXPECT_EQ(job->shapes[0].chunk_bytes, 512u << 10);
}

TEST(JobFile, WhatIsGiven) {
  const auto job = job_of(std::string(kRails) + R"(
collective:
  operation: AllToAll
  algorithm: [direct, rail-direct]
  size: 1MB
  gpus: 8
  channels: 1
  nvlink: {rate: 1.8Tbps, latency: 1us}
  step_overhead: 3us
  method: both
)");
  ASSERT_TRUE(job.has_value()) << job.error().message;
  ASSERT_EQ(job->shapes.size(), 2u);
  EXPECT_EQ(job->shapes[1].operation, Operation::kAllToAll);
  EXPECT_EQ(job->shapes[1].algorithm, Algorithm::kRailDirect);
  EXPECT_EQ(job->shapes[1].ranks, 8u);
  EXPECT_EQ(job->cluster.nvlink.rate, gbps(1800));
  EXPECT_EQ(job->cluster.nvlink.latency, us(1));
  EXPECT_EQ(job->run.step_overhead, us(3));
  EXPECT_EQ(job->method, Method::kBoth);
}

TEST(JobFile, MistakesAreToldWithTheirPlace) {
  const std::string rails = kRails;
  EXPECT_EQ(mistake_of(rails + "collective: gossip"),
            "job.yaml:2: collective.operation: 'gossip' is none of all reduce, all gather, reduce "
            "scatter, all to all, broadcast or send receive");
  EXPECT_EQ(
      mistake_of(rails + "collective: {operation: all to all, algorithm: ring}"),
      "job.yaml:2: collective.algorithm: no all to all by ring: there is direct, rail direct");
  EXPECT_EQ(mistake_of(rails + "collective:\n  gpus: 6"),
            "job.yaml:3: collective.gpus_per_node: 6 GPUs are no whole number of nodes of 4");
  EXPECT_EQ(mistake_of(rails + "collective: {gpus: 17}"),
            "job.yaml:2: collective.gpus: '17' is none of 2 .. 16");
  EXPECT_EQ(mistake_of(rails + "collective: {size: 10}"),
            "job.yaml:2: collective.size: 10 bytes are no whole number of elements of 4");
  EXPECT_EQ(
      mistake_of(rails + "collective: {algorithm: halving doubling, size: 2GiB}"),
      "job.yaml:2: collective.algorithm: halving doubling has messages of more than 1 GiB here");
  EXPECT_NE(mistake_of(rails + "collective: {sise: 10}").find("size"), std::string::npos);
  EXPECT_NE(mistake_of("collective: all reduce"), "");
}

TEST(JobFile, PresetsAreJobs) {
  for (const Preset& preset : presets()) {
    const auto job = job_of("preset: " + std::string(preset.name));
    ASSERT_TRUE(job.has_value()) << preset.name << ": " << job.error().message;
    EXPECT_GE(job->cluster.gpus_per_node, 2u);
    EXPECT_FALSE(preset.source.empty());
  }
  EXPECT_TRUE(is_job("preset: spectrum_x"));
  EXPECT_EQ(mistake_of("preset: gpu_farm").substr(0, 43),
            "job.yaml:1: preset: 'gpu_farm' is none of c");
}

TEST(JobFile, WhatTheFileSaysGoesBeforeThePreset) {
  const auto job = job_of(R"(
preset: cloud_roce_3200
topology: {nodes: 4}
collective: {algorithm: rail ring, nvlink: {latency: 2us}}
)");
  ASSERT_TRUE(job.has_value()) << job.error().message;
  EXPECT_EQ(job->cluster.ranks(), 32u);
  EXPECT_EQ(job->cluster.nvlink.rate, gbps(3600));
  EXPECT_EQ(job->cluster.nvlink.latency, us(2));
}

TEST(JobFile, SettingsReplaceWhatItSays) {
  const auto job = job_of(std::string(kRails) + "collective: {size: 1MB, algorithm: ring}",
                          {{"collective.size", "2MB"}});
  ASSERT_TRUE(job.has_value()) << job.error().message;
  EXPECT_EQ(job->shapes.front().bytes, 2'000'000u);
  const auto two = job_of(std::string(kRails) + "collective: {algorithm: ring}",
                          {{"collective.algorithm", "tree, rail ring"}});
  ASSERT_TRUE(two.has_value()) << two.error().message;
  ASSERT_EQ(two->shapes.size(), 2u);
  EXPECT_EQ(two->shapes[1].algorithm, Algorithm::kRailRing);
}

// From the file to the table.
TEST(JobRun, BothMethodsInOneTable) {
  const auto job = job_of(std::string(kRails) + R"(
collective: {algorithm: [rail ring, hierarchical], size: 4MiB, method: both})");
  ASSERT_TRUE(job.has_value()) << job.error().message;
  std::vector<CollectiveResult> results;
  for (const collectives::Shape& shape : job->shapes)
    results.push_back(run_collective(*job, shape, [](const Progress&) { return false; }));
  for (const CollectiveResult& result : results) {
    EXPECT_EQ(result.mistake, "");
    ASSERT_TRUE(result.by_packets && result.flow_seconds);
    EXPECT_NEAR(*result.flow_seconds / result.seconds(), 1, 0.1);
    EXPECT_DOUBLE_EQ(result.bus_bandwidth(), result.algorithm_bandwidth() * 2 * 15 / 16);
  }
  const std::string text = text_of(*job, results);
  EXPECT_TRUE(text.starts_with("all reduce of 4.194 MB, 16 GPUs in nodes of 4, 4 channels (by default, as NCCL)\n"))
      << text;
  EXPECT_NE(text.find("flow-level"), std::string::npos);
  const std::string csv = csv_of(results);
  EXPECT_EQ(std::ranges::count(csv, '\n'), 3);
  const std::string head = csv.substr(0, csv.find('\n')), row = csv.substr(csv.find('\n') + 1);
  EXPECT_EQ(std::ranges::count(head, ','), std::ranges::count(row.substr(0, row.find('\n')), ','));
}

TEST(JobRun, StopsWhenAsked) {
  const auto job = job_of(std::string(kRails) + "collective: {algorithm: ring, size: 64MiB}");
  ASSERT_TRUE(job.has_value());
  EXPECT_EQ(run_collective(*job, job->shapes[0], [](const Progress&) { return true; }).mistake,
            "interrupted");
}

}  // namespace
}  // namespace verbena::jobs
