// Collective operations by packets, without congestion, against their formulas: rounds of alpha and
// beta, stages of NVLink.
#include "tests/physics/physics.h"

namespace verbena::physics {
namespace collective {

constexpr double kRate = 400e9, kDelay = 200e-9;

std::string job(u32 hosts, const Wire& wire, const std::string& collective) {
  return fmt::format(
      "topology: {{kind: star, hosts: {}}}\nlinks: {{rate: 400Gbps, delay: 200ns}}\n"
      "{}collective: {{{}}}\n",
      hosts, wire.settings, collective);
}

// A message over one switch, from its first byte to its last.
double message(const Wire& wire, double bytes) {
  const double again = wire.cuts_through ? 8 : wire.full_packet();
  return (wire.bytes(bytes) + again) * 8 / kRate + 2 * kDelay + wire.switch_latency;
}

TEST(Collectives, Rings) {
  for (const Wire& wire : {rocev2(), infiniband()})
    for (const u32 n : {4u, 8u, 16u}) {
      const double block = 16.0 * (1 << 20) / n;
      const std::string rest = "algorithm: ring, channels: 1, chunk: 64MiB, size: 16MiB";
      expect_close(job_seconds(job(n, wire, rest)), 2 * (n - 1) * message(wire, block),
                   fmt::format("all reduce, {}, {}", n, wire.name));
      expect_close(job_seconds(job(n, wire, "operation: all gather, " + rest)),
                   (n - 1) * message(wire, block), fmt::format("all gather, {}, {}", n, wire.name));
    }
}

TEST(Collectives, HalvingDoubling) {
  for (const Wire& wire : {rocev2(), infiniband()})
    for (const u32 n : {4u, 8u, 16u}) {
      double sum = 0;
      for (double bytes = 16.0 * (1 << 20) / 2; bytes >= 16.0 * (1 << 20) / n; bytes /= 2)
        sum += 2 * message(wire, bytes);
      expect_close(
          job_seconds(job(n, wire, "algorithm: halving doubling, channels: 1, size: 16MiB")), sum,
          fmt::format("{}, {}", n, wire.name));
    }
}

// A chain: the first piece goes over all hops, and the others follow it.
TEST(Collectives, ABroadcastIsAPipeline) {
  for (const Wire& wire : {rocev2(), infiniband()}) {
    const double piece = 256.0 * 1024, pieces = 64, hops = 7;
    expect_close(
        job_seconds(job(8, wire,
                        "operation: broadcast, algorithm: ring, channels: 1, chunk: 256KiB, "
                        "size: 16MiB")),
        hops * message(wire, piece) + (pieces - 1) * wire.bytes(piece) * 8 / kRate, wire.name);
  }
}

// An inner node of the tree sends each piece up, and down to two children. With credits it takes
// longer: children's packets wait in the input buffers of the switch behind each other.
TEST(Collectives, ATreeIsBoundByItsInnerNodes) {
  const double closed_form = 3 * rocev2().bytes(64.0 * (1 << 20)) * 8 / kRate;
  const std::string rest = "algorithm: tree, channels: 1, chunk: 64KiB, size: 64MiB";
  expect_close(job_seconds(job(8, rocev2(), rest)), closed_form, "rocev2", 0.03);
  EXPECT_GT(job_seconds(job(8, infiniband(), rest)), closed_form);
}

TEST(Collectives, AllToAll) {
  for (const Wire& wire : {rocev2(), infiniband()}) {
    const double block = 64.0 * (1 << 20) / 8;
    expect_close(
        job_seconds(
            job(8, wire, "operation: all to all, algorithm: direct, channels: 1, size: 64MiB")),
        7 * message(wire, block), wire.name);
  }
}

// 64 hosts without collisions reach most of the line with the default channels.
TEST(Collectives, AllToAllFillsTheLineByDefault) {
  const double seconds =
      job_seconds(job(64, rocev2(), "operation: all to all, algorithm: direct, size: 16MiB"));
  EXPECT_GT(63.0 / 64 * rocev2().bytes(16.0 * (1 << 20)) * 8 / kRate / seconds, 0.8);
}

// Inside a node: 450 GB/s and 700 ns.
TEST(Collectives, NVLink) {
  const double block = 64.0 * (1 << 20) / 8, hop = 700e-9 + block / 450e9;
  const std::string text =
      "topology: {kind: star, hosts: 8}\nlinks: {rate: 400Gbps, delay: 200ns}\n"
      "collective: {gpus_per_node: 8, channels: 1, chunk: 64MiB, size: 64MiB, algorithm: ";
  expect_close(job_seconds(text + "ring}\n"), 14 * hop, "ring");
  double sum = 0;
  for (const double bytes : {32.0, 16.0, 8.0}) sum += 2 * (700e-9 + bytes * (1 << 20) / 450e9);
  expect_close(job_seconds(text + "halving doubling}\n"), sum, "halving doubling");
}

// A rail ring of two nodes: two hops by NIC in a round of eight, the others by NVLink; the slower
// of both kinds is what a round waits for.
TEST(Collectives, HierarchicalHasThreeStages) {
  const double bytes = 8.0 * (1 << 20), shard = bytes / 4;
  const double within = 3 * (700e-9 + shard / 450e9);
  const double between = 2 * message(rocev2(), shard / 2);
  expect_close(
      job_seconds("topology: {kind: rail_optimized, nodes: 2, rails: 4, spines: 0}\n"
                  "links: {rate: 400Gbps, delay: 200ns}\nhosts: {congestion_control: off}\n"
                  "collective: {algorithm: hierarchical, channels: 1, chunk: 8MiB, size: 8MiB}\n"),
      2 * within + between, "hierarchical");
}

// TCP and iWARP by the same rounds: their windows have grown after the first.
TEST(Collectives, RingsOfStreams) {
  for (const Wire& wire : {tcp(), iwarp()})
    expect_close(
        job_seconds(job(4, wire, "algorithm: ring, channels: 1, chunk: 64MiB, size: 256MiB")),
        6 * message(wire, 64.0 * (1 << 20)), wire.name, 0.05);
}

}  // namespace collective
}  // namespace verbena::physics
