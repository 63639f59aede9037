// These changes never make a run shorter: a longer cable, a slower switch, a slower link, more
// data, a host path. The scenarios are random. A change may reorder the frames that meet, for which
// one part in a hundred is allowed.
#include "base/prng.h"
#include "tests/physics/physics.h"

namespace verbena::physics {
namespace monotonicity {

constexpr double kReordering = 0.99;

struct Drawn {
  u64 rate, delay_ns, size_kb, latency_ns;
  std::string topology, hosts, workload, technology;

  [[nodiscard]] std::string text() const {
    return fmt::format(
        "topology: {}\nlinks: {{rate: {}Gbps, delay: {}ns}}\nhosts: {{congestion_control: off}}\n"
        "technology: {}\n{}\nworkload: {{kind: {}, size: {}KB}}\n",
        topology, rate, delay_ns, technology,
        technology == "rocev2"
            ? fmt::format("switch: {{forwarding: {{latency: {}ns}}}}", latency_ns)
            : fmt::format("infiniband: {{forwarding: {{latency: {}ns}}}}", latency_ns),
        workload, size_kb);
  }
};

Drawn draw(u64 seed) {
  PRNG prng(seed);
  const std::vector<std::string> topologies = {"{kind: star, hosts: 5}",
                                               "{kind: dumbbell, left: 3}",
                                               "{kind: leaf_spine, leaves: 2, hosts_per_leaf: 3, "
                                               "spines: 1}"};
  const std::vector<std::string> workloads = {"incast", "permutation", "all_to_all"};
  return {.rate = 10 * prng.in(1, 40),
          .delay_ns = prng.in(100, 3000),
          .size_kb = prng.in(10, 1500),
          .latency_ns = prng.in(100, 800),
          .topology = topologies[prng.below(topologies.size())],
          .hosts = {},
          .workload = workloads[prng.below(workloads.size())],
          .technology = prng.below(2) == 0 ? "rocev2" : "infiniband"};
}

double seconds(const Drawn& drawn) { return run(drawn.text()).summary.fct_max->seconds(); }

class Monotonicity : public testing::TestWithParam<u64> {};

TEST_P(Monotonicity, OfNetworks) {
  const Drawn drawn = draw(GetParam());
  SCOPED_TRACE(drawn.text());
  const double before = seconds(drawn);
  Drawn other = drawn;
  other.delay_ns *= 2;
  EXPECT_GE(seconds(other), before * kReordering) << "twice the delay";
  other = drawn;
  other.latency_ns *= 3;
  EXPECT_GE(seconds(other), before * kReordering) << "three times the latency of switches";
  other = drawn;
  other.rate = std::max<u64>(1, drawn.rate / 2);
  EXPECT_GE(seconds(other), before * kReordering) << "half the rate";
  other = drawn;
  other.size_kb *= 2;
  EXPECT_GE(seconds(other), before * kReordering) << "twice the data";
}

INSTANTIATE_TEST_SUITE_P(Seeds, Monotonicity, testing::Range(u64{1}, u64{41}));

class HostPaths : public testing::TestWithParam<u64> {};

TEST_P(HostPaths, NeverMakeACollectiveFaster) {
  PRNG prng(GetParam());
  const std::vector<std::string> algorithms = {"ring",        "halving doubling", "tree",
                                               "double tree", "hierarchical",     "rail ring"};
  const std::string algorithm = algorithms[prng.below(algorithms.size())];
  const u64 nodes = u64{1} << prng.in(1, 3), gpus = u64{1} << prng.in(0, 2);
  const u64 kib = u64{64} << prng.in(0, 7), channels = u64{1} << prng.in(0, 3);
  const auto job = [&](const std::string& path) {
    return fmt::format(
        "topology: {{kind: rail_optimized, nodes: {}, rails: {}, spines: 1}}\n"
        "links: {{rate: 100Gbps, delay: 300ns, fabric: {{rate: 1600Gbps, delay: 300ns}}}}\n"
        "hosts: {{congestion_control: off, path: {}}}\n"
        "collective: {{algorithm: {}, size: {}KiB, channels: {}}}\n",
        nodes, gpus, path, algorithm, kib, channels);
  };
  SCOPED_TRACE(job("none"));
  const double without = job_seconds(job("none"));
  EXPECT_GE(job_seconds(job("gpudirect")), without * kReordering);
  EXPECT_GE(job_seconds(job("host_rdma")), without * kReordering);
}

INSTANTIATE_TEST_SUITE_P(Seeds, HostPaths, testing::Range(u64{1}, u64{41}));

}  // namespace monotonicity
}  // namespace verbena::physics
