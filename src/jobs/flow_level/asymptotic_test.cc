// Each algorithm at flow-level against its formula in alpha (the latency of a message) and beta
// (the time of a byte), without congestion, for 8 to 4,096 ranks. R. Thakur, R. Rabenseifner and
// W. Gropp, "Optimization of Collective Communication Operations in MPICH", 2005; P. Sanders,
// J. Speck and J. Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan",
// 2009.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "collectives/make_schedule.h"
#include "jobs/flow_level/flow_run.h"
#include "jobs/testing.h"

namespace verbena::jobs {
namespace {

using collectives::Algorithm;
using collectives::Operation;
using collectives::Shape;

const Stop kGoesOn = [](const Progress&) { return false; };
constexpr fabric::LinkConfig kCable{.rate = gbps(400), .delay = ns(500)};
constexpr u32 kInNode = 8;

const double kBeta = (4096.0 + 62) / 4096 * 8 / 400e9;  // seconds a byte, with headers
const double kAlpha = 2 * 500e-9 + 4158 * 8 / 400e9;    // over one switch, stored and forwarded
const NVLinkConfig kNVLink{};
const double kBetaNVLink = 8 / static_cast<double>(kNVLink.rate.bps());
const double kAlphaNVLink = kNVLink.latency.seconds();

double by_flows(const Shape& shape) {
  const TestNetwork net = shape.ranks_per_node == 1
                              ? star(shape.ranks, kCable)
                              : rails(shape.nodes(), shape.ranks_per_node, 0, kCable);
  const Cluster cluster{
      .gpus_per_node = shape.ranks_per_node, .nics = net.hosts, .nvlink = kNVLink};
  const auto schedule = make_schedule(shape);
  const FlowLevelResult result = run_flow_level(*schedule, cluster, net.topology, {}, kGoesOn);
  EXPECT_EQ(result.mistake, "");
  return result.seconds;
}

class Asymptotic : public testing::TestWithParam<u32> {};

TEST_P(Asymptotic, Ring) {
  const double n = GetParam(), bytes = 1u << 30;
  const Shape all{.ranks = GetParam(), .bytes = u64{1} << 30, .chunk_bytes = 1u << 30};
  EXPECT_NEAR(by_flows(all) / (2 * (n - 1) * (kAlpha + bytes / n * kBeta)), 1, 0.05);
  Shape half = all;
  half.operation = Operation::kAllGather;
  EXPECT_NEAR(by_flows(half) / ((n - 1) * (kAlpha + bytes / n * kBeta)), 1, 0.05);
}

TEST_P(Asymptotic, HalvingDoubling) {
  const double n = GetParam(), bytes = 1u << 30, rounds = std::log2(n);
  const Shape shape{.algorithm = Algorithm::kHalvingDoubling,
                    .ranks = GetParam(),
                    .bytes = u64{1} << 30,
                    .chunk_bytes = 1u << 19};
  EXPECT_NEAR(by_flows(shape) / (2 * (rounds * kAlpha + bytes * (n - 1) / n * kBeta)), 1, 0.05);
}

TEST_P(Asymptotic, AllToAll) {
  const double n = GetParam(), bytes = 1u << 28;
  if (n > 512) return;  // n flows a round
  const Shape shape{.operation = Operation::kAllToAll,
                    .algorithm = Algorithm::kDirect,
                    .ranks = GetParam(),
                    .bytes = u64{1} << 28,
                    .chunk_bytes = 1u << 19};
  EXPECT_NEAR(by_flows(shape) / ((n - 1) * (kAlpha + bytes / n * kBeta)), 1, 0.05);
}

// Up and down together an inner node sends three times the data, and a node of two trees twice
// half of it and once the other half.
TEST_P(Asymptotic, Trees) {
  const double bytes = 1u << 30;
  Shape shape{.algorithm = Algorithm::kTree,
              .ranks = GetParam(),
              .bytes = u64{1} << 30,
              .chunk_bytes = 1u << 19};
  EXPECT_NEAR(by_flows(shape) / (3 * bytes * kBeta), 1, 0.05);
  shape.algorithm = Algorithm::kDoubleTree;
  EXPECT_NEAR(by_flows(shape) / (2 * bytes * kBeta), 1, 0.05);
}

// While the ring between nodes sums one piece, the nodes scatter and gather others by NVLink: what
// takes longer is repeated for each piece.
TEST_P(Asymptotic, Hierarchical) {
  if (GetParam() < 2 * kInNode) return;
  const double nodes = GetParam() / kInNode, bytes = 1u << 30;
  const Shape shape{.algorithm = Algorithm::kHierarchical,
                    .ranks = GetParam(),
                    .ranks_per_node = kInNode,
                    .bytes = u64{1} << 30,
                    .chunk_bytes = 512 * 1024};
  const double block = std::min(512.0 * 1024, bytes / kInNode / nodes);
  const double pieces = bytes / kInNode / nodes / block;
  const double ring = 2 * (nodes - 1) * (kAlpha + block * kBeta);
  const double within = (kInNode - 1) * (kAlphaNVLink + block * nodes * kBetaNVLink);
  const double by_nvlink = 2 * (kInNode - 1) * block * nodes * kBetaNVLink;
  const double first = ring + 2 * within;
  EXPECT_NEAR(by_flows(shape) / (first + (pieces - 1) * std::max(ring, by_nvlink)), 1, 0.05);
}

INSTANTIATE_TEST_SUITE_P(Ranks, Asymptotic, testing::Values(8, 16, 64, 512, 4096));

// The case that users measured: 2,048 nodes of 8 GPUs, 1 GiB. The ring needs 4,094 rounds of 64 KiB
// by eight channels, which takes 10 ms; cut again by the nodes it took 134 ms.
TEST(Asymptotic, HierarchicalAt2048Nodes) {
  const Shape shape{.algorithm = Algorithm::kHierarchical,
                    .ranks = 2048 * kInNode,
                    .ranks_per_node = kInNode,
                    .bytes = u64{1} << 30,
                    .channels = kInNode,
                    .chunk_bytes = 512 * 1024};
  const double bytes = 1u << 30, nodes = 2048;
  const double ring =
      2 * (nodes - 1) *
      std::max(bytes / kInNode / nodes * kBeta, kAlpha + bytes / kInNode / nodes / 8 * kBeta);
  const double within = bytes * (kInNode - 1) / kInNode * kBetaNVLink;
  EXPECT_NEAR(by_flows(shape) / (ring + 2 * within), 1, 0.05);
}

}  // namespace
}  // namespace verbena::jobs
