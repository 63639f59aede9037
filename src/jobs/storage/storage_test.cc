#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jobs/job_for_test.h"
#include "jobs/job_results.h"

namespace verbena::jobs {
namespace {

using test::job_of;

std::string mistake_of_storage(const std::string& storage) {
  return test::mistake_of(
      "topology: {kind: star, hosts: 4}\ncollective: {gpus: 2}\nstorage: " + storage + "\n");
}

JobResults run(const std::string& text, u32 threads = 1) {
  auto job = job_of(text);
  EXPECT_TRUE(job.has_value()) << job.error().message;
  job->network.threads = threads;
  return run_job(*job, [](const Progress&) { return false; });
}

// Two GPUs that tell each other what they have to by NVLink, so that the links carry reads alone.
std::string idle_network(const std::string& storage) {
  return R"(
topology: {kind: star, hosts: 3}
links: {rate: 100Gbps, delay: 1us}
inference: {gpus: 2, gpus_per_node: 2, model: {layers: 2}, batch: 1, prompt: 4096, output: 2}
storage: )" +
         storage + "\n";
}

const StorageResult& storage_of(const JobResults& results) {
  return *results.step->packets.storage;
}

// On 100 Gb/s, by a switch 1 us away on either side that takes 425 ns, frames of 4096 bytes and
// about 100 of headers and gap: the command 2.4 us and its own time twice, the data 32 frames and
// 2.4 us, the last of them twice.
TEST(StorageReads, OneReadTakesItsThreeMessages) {
  const JobResults results = run(idle_network("{servers: 1, queue_depth: 1, read: 50MB/s}"));
  ASSERT_EQ(results.step->mistake, "");
  ASSERT_GT(storage_of(results).reads.size(), 3u);
  const double alone = 4e-6 + 2 * 425e-9 + 33 * (4096 + 100) * 8 / 100e9;
  EXPECT_NEAR(storage_of(results).median.seconds(), alone, 0.02 * alone);
}

TEST(StorageReads, AnAmountIsReadAndNoMore) {
  const JobResults results = run(idle_network("{servers: 1, amount: 300KiB}"));
  EXPECT_EQ(storage_of(results).bytes, 2u * 3 * 128 * 1024);  // whole blocks
}

TEST(StorageReads, TheMediumIsPartOfTheLatency) {
  const auto median = [](const std::string& medium) {
    const JobResults results = run(idle_network(
        "{servers: 1, queue_depth: 1, block: 4KiB, read: 10MB/s, medium: " + medium + "}"));
    return storage_of(results).median;
  };
  EXPECT_NEAR((median("80us") - median("0")).seconds(), 80e-6, 0.1e-6);
}

// Connecting the controllers takes 2 % of these short runs.
TEST(StorageReads, ARateIsKept) {
  const JobResults results = run(idle_network("{servers: 1, block: 16KiB, read: 2GB/s}"));
  EXPECT_NEAR(storage_of(results).rate(), 2e9, 0.05e9);
}

// A server's link gives each of two GPUs half of it, less headers.
TEST(StorageReads, WithoutARateTheLinkIsFull) {
  const JobResults results = run(idle_network("{servers: 1}"));
  EXPECT_NEAR(storage_of(results).rate(), 12.5e9 / 2 * 4096 / (4096 + 80), 0.2e9);
}

// 16 hosts read a checkpoint from one server: its link is shared, and the latency is theirs.
TEST(StorageReads, ACheckpointIsReadByAllHosts) {
  const JobResults results = run(R"(
topology: {kind: star, hosts: 16}
links: {rate: 100Gbps, delay: 1us}
collective: {algorithm: ring, size: 32MiB}
storage: {servers: 1, amount: 1MiB, block: 128KiB, queue_depth: 8}
)");
  const StorageResult& storage = *results.collectives[0].by_packets->storage;
  EXPECT_EQ(storage.bytes, 16u << 20);
  const double alone = 128 * 1024 * 8 / 100e9;
  EXPECT_GT(storage.median.seconds(), 16 * alone);
}

constexpr const char* kBusy = R"(
topology: {kind: star, hosts: 4}
links: {rate: 100Gbps, delay: 450ns}
collective: {algorithm: ring, size: 4MiB}
)";

// `--expect` and sweeps know reads by these names.
TEST(StorageReads, HaveMetricsAndTheirCongestionIsTold) {
  const std::string text =
      "topology: {kind: star, hosts: 5}\nlinks: {rate: 100Gbps, delay: 1us}\n"
      "collective: {gpus: 4, algorithm: ring, size: 4MiB}\n"
      "storage: {servers: 1, block: 64KiB}\n";
  const JobResults results = run(text);
  const auto job = job_of(text);
  const auto metrics = metrics_of(*job, results);
  const auto value = [&](std::string_view name) {
    const auto found = std::ranges::find(metrics, name, &fabric::Metric::name);
    return found == metrics.end() ? -1 : found->value;
  };
  const PacketResult& packets = *results.collectives.front().by_packets;
  EXPECT_GT(packets.storage->reads.size(), 0u);
  EXPECT_EQ(value("ring.storage.reads"), static_cast<double>(packets.storage->reads.size()));
  EXPECT_EQ(value("ring.storage.rate"), packets.storage->rate());
  EXPECT_EQ(value("ring.storage.p99"), packets.storage->p99.seconds());
  EXPECT_THAT(
      text_of(*job, results),
      testing::HasSubstr("ring: " + std::to_string(packets.counters.marks) + " ECN marks, "));
}

TEST(StorageReads, TheyTakeFromTheJobs) {
  const auto seconds = [](const std::string& storage) {
    return run(std::string(kBusy) + storage).collectives[0].seconds();
  };
  const double alone = seconds("");
  EXPECT_EQ(seconds("storage: {servers: 2, read: off}"), alone);
  EXPECT_GT(seconds("storage: {servers: 2, read: 2GB/s}"), 1.05 * alone);
}

TEST(StorageReads, ThreadsMakeNoDifference) {
  const std::string text = std::string(kBusy) + "storage: {servers: 2, read: 2GB/s, medium: 5us}";
  const JobResults one = run(text), several = run(text, 3);
  EXPECT_EQ(text_of(*job_of(text), one), text_of(*job_of(text), several));
}

TEST(StorageReads, HostsBesideTheGPUsMayBeServers) {
  const auto job = job_of(
      "topology: {kind: star, hosts: 4}\ncollective: {gpus: 2}\nstorage: {servers: [h2, h3]}\n");
  ASSERT_TRUE(job.has_value()) << job.error().message;
  EXPECT_EQ(job->storage->servers,
            (std::vector<fabric::NodeIndex>{job->plan.hosts[2], job->plan.hosts[3]}));
}

TEST(StorageReads, OtherTechnologiesHaveThemToo) {
  for (const char* const technology : {"infiniband", "tcp", "iwarp"}) {
    const JobResults results = run(std::string("technology: ") + technology + kBusy +
                                   "storage: {servers: 2, read: 1GB/s}");
    ASSERT_EQ(results.collectives[0].mistake, "") << technology;
    EXPECT_GT(results.collectives[0].by_packets->storage->reads.size(), 10u) << technology;
  }
}

TEST(StorageReads, WhatIsWrongIsTold) {
  EXPECT_EQ(mistake_of_storage("{servers: [h0, h3]}"),
            "job.yaml:3: storage.servers: h0 is a GPU's; `gpus` leaves hosts out");
  EXPECT_EQ(mistake_of_storage("{servers: [h9, h3]}"),
            "job.yaml:3: storage.servers: there is no host h9");
  EXPECT_EQ(mistake_of_storage("{servers: 0}"), "job.yaml:3: storage.servers: 1 to 4096");
  EXPECT_EQ(mistake_of_storage("{read: fast}"),
            "job.yaml:3: storage.read: 'fast' is no rate of 1Mbps .. 10Tbps");
}

}  // namespace
}  // namespace verbena::jobs
