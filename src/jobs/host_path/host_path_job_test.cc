// Collectives over TCP and iWARP, with and without a host path.
#include <gtest/gtest.h>

#include "jobs/job_for_test.h"
#include "jobs/job_run.h"
#include "jobs/nvlink_ports.h"

namespace verbena::jobs {
namespace {

using test::job_of;

CollectiveResult run(const std::string& rest) {
  const auto job = job_of(
      "topology: {kind: star, hosts: 4}\n"
      "collective: {size: 32MiB, algorithm: ring}\n" +
      rest);
  EXPECT_TRUE(job.has_value()) << job.error().message;
  return run_collective(*job, job->shapes.front(), [](const Progress&) { return false; });
}

TEST(HostPathJob, ARingOverTCPAndIWARPIsAsFastAsItsFramesAllow) {
  for (const char* const technology : {"tcp", "iwarp"}) {
    const CollectiveResult result =
        run(std::string("technology: ") + technology + "\nlinks: {delay: 100ns}\n");
    ASSERT_EQ(result.mistake, "");
    // 100 Gb/s, 8948 bytes of 9018; the start of the windows is in it.
    EXPECT_NEAR(result.bus_bandwidth() / (12.5e9 * 8948 / 9018), 1, 0.05) << technology;
    EXPECT_EQ(result.by_packets->repairs.timeouts, 0u);
  }
}

TEST(HostPathJob, ARingSurvivesLoss) {
  for (const char* const technology : {"tcp", "iwarp"}) {
    const CollectiveResult result = run(std::string("technology: ") + technology +
                                        "\nlinks: {error_rate: 0.5%}\ntcp: {rto_min: 5ms}\n");
    ASSERT_EQ(result.mistake, "");
    EXPECT_GT(result.by_packets->repairs.retransmissions, 0u);
  }
}

// A receiving core takes 42 Gb/s: with one of them that is what is left of 100.
TEST(HostPathJob, TheKernelsTCPIsBoundByItsCores) {
  const CollectiveResult result =
      run("technology: tcp\nhosts: {path: {kind: kernel_tcp, cores: 1}}\n");
  ASSERT_EQ(result.mistake, "");
  EXPECT_LT(result.bus_bandwidth(), 42e9 / 8);
  EXPECT_GT(result.bus_bandwidth(), 0.9 * 42e9 / 8);
  // At the bound a chunk's CPU time is spent in the time that a receiving core takes for it.
  constexpr u64 kChunk = 512 * 1024;
  Duration cpu;
  const HostPathModel& model = model_of(HostPathKind::kKernelTCP);
  for (const std::span<const HostStep> steps : {model.sending, model.receiving})
    for (const HostStep& step : steps) cpu = cpu + step.cpu_time(kChunk);
  const double cores =
      result.by_packets->cpu_time.seconds() / result.by_packets->time.seconds() / 4;
  EXPECT_NEAR(cores / (cpu.seconds() / time_at(gbps(42), kChunk).seconds()), 1, 0.1);
}

TEST(HostPathJob, WithoutCopiesItIsFaster) {
  double before = 0;
  for (const char* const rest : {"technology: tcp\nhosts: {path: {kind: kernel_tcp, cores: 2}}\n",
                                 "technology: tcp\nhosts: {path: {kind: tcp_offload, cores: 2}}\n",
                                 "hosts: {path: gpudirect, congestion_control: off}\n"}) {
    const CollectiveResult result = run(std::string("links: {rate: 200Gbps}\n") + rest);
    ASSERT_EQ(result.mistake, "");
    EXPECT_GT(result.bus_bandwidth(), before) << rest;
    before = result.bus_bandwidth();
    EXPECT_GT(result.by_packets->spent.host, Duration());
    EXPECT_EQ(result.by_packets->spent.sum(), result.by_packets->time) << rest;
  }
  const CollectiveResult staged =
      run("links: {rate: 200Gbps}\nhosts: {path: host_rdma, congestion_control: off}\n");
  EXPECT_LT(staged.bus_bandwidth(), before);
}

TEST(HostPathJob, APathThatIsNoneIsRefused) {
  const std::string rest = "topology: star\ncollective: all reduce\n";
  for (const auto& [path, technology] :
       {std::pair("kernel_tcp", "rocev2"), {"gpudirect", "tcp"}, {"tcp_offload", "iwarp"}}) {
    const auto job = job_of(rest + "technology: " + technology + "\nhosts: {path: " + path + "}\n");
    ASSERT_FALSE(job.has_value());
    EXPECT_EQ(job.error().message,
              std::string("job.yaml:4: hosts.path.kind: ") + path + " is no way for " + technology);
  }
}

}  // namespace
}  // namespace verbena::jobs
