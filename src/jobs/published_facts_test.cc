// A published figure for each preset: docs/jobs.md, Published facts, has the sources, and why ours
// differ. Here is how far they do.
#include <gtest/gtest.h>

#include "jobs/job_for_test.h"
#include "jobs/job_results.h"

namespace verbena::jobs {
namespace {

std::vector<CollectiveResult> simulate(const std::string& text,
                                       const std::vector<fabric::Setting>& settings = {}) {
  const auto job = test::job_of(text, settings);
  EXPECT_TRUE(job.has_value()) << job.error().message;
  return run_job(*job, [](const Progress&) { return false; }).collectives;
}

double busbw_of(const std::string& text, const std::vector<fabric::Setting>& settings = {}) {
  const std::vector<CollectiveResult> results = simulate(text, settings);
  EXPECT_EQ(results[0].mistake, "");
  return results[0].bus_bandwidth() / 1e9;
}

// Returns the mean of several seeds, because hashes decide the paths.
double mean_busbw_of(const std::string& text, std::vector<fabric::Setting> settings) {
  constexpr u32 kSeeds = 3;
  double sum = 0;
  for (u32 seed = 1; seed <= kSeeds; ++seed) {
    settings.push_back({"seed", std::to_string(seed)});
    sum += busbw_of(text, settings);
    settings.pop_back();
  }
  return sum / kSeeds;
}

// A3 Ultra, 16 H200, AllGather: 325.72 GB/s at 8 GiB; the NICs have 400.
TEST(PublishedFacts, CloudRoCE) {
  const double ours = busbw_of(
      "preset: cloud_roce_3200\ntopology: {nodes: 2}\n"
      "collective: {operation: all gather, algorithm: rail ring, size: 256MiB}\n");
  EXPECT_NEAR(325.72 / ours, 0.83, 0.03);
}

// A3 Mega, 16 H100, AllGather: 188.54 GB/s at 8 GiB; the NICs have 200.
TEST(PublishedFacts, CloudTCP) {
  const double ours = busbw_of(
      "preset: cloud_tcp_1600\ntopology: {nodes: 2}\n"
      "collective: {operation: all gather, algorithm: rail ring, size: 256MiB}\n");
  EXPECT_NEAR(188.54 / ours, 0.97, 0.03);
}

// 32 H100 on 8 NDR NICs a node, AllReduce: 330.93 GB/s; the NICs have 400.
TEST(PublishedFacts, InfiniBandNDR) {
  const double ours = busbw_of(
      "preset: dgx_h100_superpod\ntopology: {nodes: 4}\n"
      "collective: {algorithm: rail ring, size: 64MiB}\n");
  EXPECT_NEAR(330.93 / ours, 0.84, 0.03);
}

// Frames spread one by one over ECMP, where all NICs send across leaves: 1.6 times.
TEST(PublishedFacts, SpectrumX) {
  const std::string text =
      "preset: spectrum_x\ntopology: {nodes: 4, spines: 4}\n"
      "collective: {algorithm: ring, size: 4MiB, placement: random, gpus_per_node: 1, "
      "channels: 8}\n";
  const double ratio = mean_busbw_of(text, {}) / mean_busbw_of(text, {{"switch.ecmp", "flow"}});
  EXPECT_GT(ratio, 1.25);
  EXPECT_LT(ratio, 1.75);
}

// Four times the queue pairs, whose hashes spread better: up to 40 % more. Here it depends on how
// many there were before.
TEST(PublishedFacts, EthernetQPScaling) {
  const auto busbw = [](const std::string& channels) {
    return mean_busbw_of(
        "preset: ethernet_100g\ntopology: {nodes: 16}\n"
        "collective: {algorithm: ring, size: 4MiB, placement: random, gpus_per_node: 1}\n",
        {{"collective.channels", channels}});
  };
  EXPECT_GT(busbw("8") / busbw("2"), 1.3);
  const double with_more = busbw("16") / busbw("4");
  EXPECT_GT(with_more, 1.1);
  EXPECT_LT(with_more, 1.4);
}

// HPN: a link of a NIC that fails stops no training, which goes on over the other one. The NICs
// probe: without that, the end of a message that the link lost costs an ACK timeout, 268 ms.
TEST(PublishedFacts, DualPlane) {
  const std::string text =
      "preset: dual_plane\ntopology: {segments: 1, hosts_per_segment: 2, spines_per_plane: 2}\n"
      "switch: {convergence: 100us}\ncollective: {algorithm: rail ring, size: 64MiB}\n";
  const double whole = busbw_of(text);
  EXPECT_GT(whole, 380);  // of 400, by both ports
  const double broken = busbw_of(text + "faults: {down: n0.g0-tor0.0.A, at: 20us, for: 100ms}\n",
                                 {{"hosts.requester.probe", "100us"}});
  EXPECT_LT(broken, whole / 2);
  EXPECT_GT(broken, whole / 3);
}

// Without spines: the same for AllReduce along rails, and an AllToAll by forwarding inside nodes
// that takes 8.2 to 11.2 % more than one on a full fabric without collisions.
TEST(PublishedFacts, RailOnly) {
  const auto text = [](const std::string& spines, const std::string& collective) {
    return "topology: {kind: rail_optimized, nodes: 8, rails: 8, spines: " + spines +
           "}\nlinks: {rate: 400Gbps, delay: 450ns}\ncollective: " + collective + "\n";
  };
  const std::string ring = "{algorithm: rail ring, size: 16MiB}";
  EXPECT_EQ(busbw_of(text("1", ring)), busbw_of(text("8", ring)));
  const double ours =
      simulate(text("1", "{operation: all to all, algorithm: rail direct, size: 64MiB}"))[0]
          .seconds();
  // The time for the data that a NIC sends, with frames of 4096 bytes and about 80 of headers.
  const double ideal = 7.0 / 8 * (64 << 20) * (4096.0 + 80) / 4096 * 8 / 400e9;
  EXPECT_GT(ours / ideal, 1.0);
  EXPECT_LT(ours / ideal, 1.11);
}

}  // namespace
}  // namespace verbena::jobs
