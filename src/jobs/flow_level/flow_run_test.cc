#include "jobs/flow_level/flow_run.h"

#include <gtest/gtest.h>

#include "collectives/make_schedule.h"
#include "jobs/collective_run.h"
#include "jobs/flow_level/ways.h"
#include "jobs/testing.h"

namespace verbena::jobs {
namespace {

using collectives::Algorithm;
using collectives::Operation;
using collectives::Shape;

const Stop kNever = [](const Progress&) { return false; };
constexpr fabric::LinkConfig kLink{.rate = gbps(100), .delay = us(1)};

double by_flows(const Shape& shape, const TestNetwork& net) {
  const auto schedule = make_schedule(shape);
  const Cluster cluster{.gpus_per_node = shape.ranks_per_node, .nics = net.hosts};
  const FlowLevelResult result = run_flow_level(*schedule, cluster, net.topology, {}, kNever);
  EXPECT_EQ(result.mistake, "");
  return result.seconds;
}

double by_packets(const Shape& shape, const TestNetwork& net) {
  fabric::NetworkConfig config;
  config.host = [](const fabric::LinkConfig&) {
    fabric::HostConfig host;
    host.device.active_mtu = MTU::k4096;
    return host;
  };
  const auto schedule = make_schedule(shape);
  const Cluster cluster{.gpus_per_node = shape.ranks_per_node, .nics = net.hosts};
  fabric::Network network(net.topology, network_for(cluster, config));
  CollectiveRun run(*schedule, cluster, {}, network);
  run.start();
  EXPECT_FALSE(network.run(Time::never()));
  EXPECT_TRUE(run.finished());
  return run.time().seconds();
}

TEST(FlowLevel, ARingIsItsClosedForm) {
  const Shape shape{.ranks = 8, .bytes = 8u << 20};
  const double round = (1u << 20) * (4096.0 + 62) / 4096 * 8 / 100e9 + 2e-6 + 4158 * 8 / 100e9;
  EXPECT_NEAR(by_flows(shape, star(8, kLink)), 14 * round, 1e-9);
}

// Eight chunks go through a chain of four ranks: the first takes three hops, and each of the others
// arrives one chunk's time after the one before. A hop's latency is far below a chunk's time.
TEST(FlowLevel, APipelineTakesATimeForEachHopAndEachFurtherChunk) {
  const Shape shape{.operation = Operation::kBroadcast,
                    .algorithm = Algorithm::kRing,
                    .ranks = 4,
                    .bytes = 8u << 20,
                    .chunk_bytes = 1u << 20};
  const double chunk = (1u << 20) * (4096.0 + 62) / 4096 * 8 / 100e9;
  const double latency = 2e-6 + 4158 * 8 / 100e9;
  EXPECT_NEAR(by_flows(shape, star(4, kLink)), (3 + 7) * chunk, 3 * latency);
}

// Checks the error that users are told: within 5 % if no flows collide.
TEST(FlowLevel, AgreesWithPackets) {
  const TestNetwork hub = star(16, kLink), railed = rails(4, 4, 4, kLink);
  for (const auto& [operation, algorithm] :
       {std::pair{Operation::kAllReduce, Algorithm::kRing},
        std::pair{Operation::kAllReduce, Algorithm::kHalvingDoubling},
        std::pair{Operation::kAllGather, Algorithm::kHalvingDoubling},
        std::pair{Operation::kAllToAll, Algorithm::kDirect},
        std::pair{Operation::kSendReceive, Algorithm::kDirect},
        std::pair{Operation::kBroadcast, Algorithm::kRing}}) {
    const Shape shape{.operation = operation,
                      .algorithm = algorithm,
                      .ranks = 16,
                      .bytes = 8u << 20,
                      .chunk_bytes = operation == Operation::kBroadcast ? 1u << 18 : 0};
    EXPECT_NEAR(by_flows(shape, hub) / by_packets(shape, hub), 1, 0.05)
        << name_of(operation) << " by " << name_of(algorithm);
  }
  for (const Algorithm algorithm : {Algorithm::kRailRing, Algorithm::kHierarchical}) {
    const Shape shape{.algorithm = algorithm,
                      .ranks = 16,
                      .ranks_per_node = 4,
                      .bytes = 16u << 20,
                      .channels = 4};
    EXPECT_NEAR(by_flows(shape, railed) / by_packets(shape, railed), 1, 0.15) << name_of(algorithm);
  }
}

// Two channels of one NIC begin and end their rounds together, so that each round has its latency;
// four drift apart, and hide it.
TEST(FlowLevel, TwoChannelsDoNotHideEachOthersLatencyAndFourDo) {
  const TestNetwork hub = star(16, kLink);
  for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kHalvingDoubling})
    for (const u32 channels : {2u, 4u}) {
      const Shape shape{
          .algorithm = algorithm, .ranks = 16, .bytes = 1u << 20, .channels = channels};
      EXPECT_NEAR(by_flows(shape, hub) / by_packets(shape, hub), 1, 0.1)
          << name_of(algorithm) << ", " << channels;
    }
}

TEST(FlowLevel, NoWayIsSaid) {
  const TestNetwork net = rails(2, 2, 0, kLink);
  const auto schedule =
      collectives::make_schedule({.ranks = 4, .ranks_per_node = 2, .bytes = 4096});
  const Cluster cluster{.gpus_per_node = 2, .nics = net.hosts};
  EXPECT_EQ(run_flow_level(*schedule, cluster, net.topology, {}, kNever).mistake,
            "there is no way from the NIC of rank 1 to that of rank 2");
}

TEST(FlowLevel, CanBeStopped) {
  const TestNetwork net = star(2, kLink);
  const auto schedule = collectives::make_schedule({.ranks = 2, .bytes = 4096});
  const Cluster cluster{.gpus_per_node = 1, .nics = net.hosts};
  EXPECT_EQ(
      run_flow_level(*schedule, cluster, net.topology, {}, [](const Progress&) { return true; })
          .mistake,
      "interrupted");
}

TEST(Ways, SpreadOverAllThatAreShortest) {
  const TestNetwork net = rails(2, 2, 4, kLink);
  Ways ways(net.topology);
  std::vector<u32> seen;
  for (u64 flow = 0; flow < 100; ++flow) {
    std::vector<u32> way;
    ASSERT_TRUE(ways.find(net.hosts[0], net.hosts[1], flow, way));
    ASSERT_EQ(way.size(), 4u);  // leaf, spine, leaf, host
    EXPECT_EQ(way[0], 0u);
    EXPECT_EQ(way[3], 2 * 1 + 1u);
    seen.push_back(way[1]);
  }
  std::ranges::sort(seen);
  EXPECT_EQ(std::ranges::unique(seen).begin() - seen.begin(), 4);
  std::vector<u32> way;
  ASSERT_TRUE(ways.find(net.hosts[0], net.hosts[2], 0, way));
  EXPECT_EQ(way, (std::vector<u32>{0, 2 * 2 + 1}));  // the same leaf
}

}  // namespace
}  // namespace verbena::jobs
