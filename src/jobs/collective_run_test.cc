#include "jobs/collective_run.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "collectives/make_schedule.h"
#include "jobs/testing.h"

namespace verbena::jobs {
namespace {

using collectives::Algorithm;
using collectives::Operation;
using collectives::Shape;

constexpr Rate kRate = gbps(100);
constexpr Duration kDelay = us(1);
constexpr u32 kHeaders = 50 + 12;  // of each packet

fabric::NetworkConfig lossless() {
  fabric::NetworkConfig config;
  config.host = [](const fabric::LinkConfig&) {
    fabric::HostConfig host;
    host.device.active_mtu = MTU::k4096;
    return host;
  };
  config.switch_port = [](const fabric::LinkConfig& link) {
    fabric::SwitchPortConfig port;
    port.marking.enabled = false;
    port.buffer.headroom =
        fabric::headroom_for(link.rate, link.delay, fabric::NetworkConfig::kLongestFrame);
    return port;
  };
  return config;
}

struct Result {
  double seconds = 0;
  TimeSpent spent;
  u64 network_bytes = 0, nvlink_bytes = 0, messages = 0;
  fabric::Counters counters;
};

Result run(const Shape& shape, const TestNetwork& net, const RunConfig& config = {},
           const NVLinkConfig& nvlink = {}, u32 threads = 1) {
  EXPECT_EQ(refusal(shape), "");
  const auto schedule = make_schedule(shape);
  Cluster cluster{.gpus_per_node = shape.ranks_per_node, .nics = net.hosts, .nvlink = nvlink};
  cluster.nics.resize(shape.ranks);
  fabric::NetworkConfig network_config = lossless();
  network_config.threads = threads;
  fabric::Network network(net.topology, network_for(cluster, network_config));
  CollectiveRun collective(*schedule, cluster, config, network);
  collective.start();
  EXPECT_FALSE(network.run(Time::never()));
  EXPECT_EQ(collective.mistake(), "");
  EXPECT_TRUE(collective.finished());
  EXPECT_EQ(collective.spent().sum(), collective.time());
  EXPECT_EQ(network.frames_in_flight(), 0u);
  EXPECT_EQ(network.counters().drops, 0u);
  return {collective.time().seconds(), collective.spent(),    collective.network_bytes(),
          collective.nvlink_bytes(),   collective.messages(), network.counters()};
}

Result run_on_star(const Shape& shape, const RunConfig& config = {}) {
  return run(shape, star(shape.ranks, {.rate = kRate, .delay = kDelay}), config);
}

// How long so many bytes take at a NIC, with their headers.
double wire_time(u64 bytes) {
  const double packets = std::ceil(static_cast<double>(bytes) / 4096);
  return (static_cast<double>(bytes) + packets * kHeaders) * 8 / 100e9;
}

// Returns the time of a message's last packet after the NIC has sent it: the delays of two links,
// and one more transmission by the switch.
double way() { return 2e-6 + (4096 + kHeaders) * 8 / 100e9; }

constexpr u64 kBytes = 16u << 20;
constexpr u32 kPieces = 64;  // where the data is cut

struct ClosedForm {
  Operation operation;
  Algorithm algorithm;
  u32 ranks;
  double (*seconds)(u32 ranks);
};

double ring_rounds(u32 rounds, u32 ranks) { return rounds * (wire_time(kBytes / ranks) + way()); }
double halving(u32 ranks) {
  double sum = 0;
  for (u32 n = 2; n <= ranks; n *= 2) sum += wire_time(kBytes / n) + way();
  return sum;
}
// A pipeline: a NIC sends everything `times`, and the first piece needs `hops` to the last rank.
double pipeline(double times, double hops) {
  return times * wire_time(kBytes) + hops * (wire_time(kBytes / kPieces) + way());
}

constexpr std::array kClosedForms = {
    ClosedForm{Operation::kAllReduce, Algorithm::kRing, 8,
               [](u32 n) { return ring_rounds(2 * (n - 1), n); }},
    ClosedForm{Operation::kAllReduce, Algorithm::kRing, 7,
               [](u32 n) { return ring_rounds(2 * (n - 1), n); }},
    ClosedForm{Operation::kAllGather, Algorithm::kRing, 8,
               [](u32 n) { return ring_rounds(n - 1, n); }},
    ClosedForm{Operation::kReduceScatter, Algorithm::kRing, 8,
               [](u32 n) { return ring_rounds(n - 1, n); }},
    ClosedForm{Operation::kAllReduce, Algorithm::kHalvingDoubling, 8,
               [](u32 n) { return 2 * halving(n); }},
    ClosedForm{Operation::kAllGather, Algorithm::kHalvingDoubling, 16, halving},
    ClosedForm{Operation::kReduceScatter, Algorithm::kHalvingDoubling, 16, halving},
    ClosedForm{Operation::kAllToAll, Algorithm::kDirect, 8,
               [](u32 n) { return ring_rounds(n - 1, n); }},
    ClosedForm{Operation::kBroadcast, Algorithm::kRing, 8,
               [](u32 n) { return pipeline(1.0 - 1.0 / kPieces, n - 1); }},
    ClosedForm{Operation::kSendReceive, Algorithm::kDirect, 8,
               [](u32) { return wire_time(kBytes) + way(); }},
};

class IdealFabric : public testing::TestWithParam<ClosedForm> {};

// A collective where nothing is in its way: bus bandwidth as nccl-tests defines it.
TEST_P(IdealFabric, BusBandwidthIsTheClosedForm) {
  const ClosedForm& form = GetParam();
  const bool is_cut = form.operation == Operation::kBroadcast;
  const Shape shape{.operation = form.operation,
                    .algorithm = form.algorithm,
                    .ranks = form.ranks,
                    .bytes = kBytes,
                    .chunk_bytes = is_cut ? kBytes / kPieces : 0};
  const Result result = run_on_star(shape);
  const double factor = bus_factor(form.operation, form.ranks) * kBytes * 8;
  const double bus = factor / result.seconds, expected = factor / form.seconds(form.ranks);
  EXPECT_NEAR(bus / expected, 1, 0.01) << bus / 1e9 << " Gb/s, not " << expected / 1e9;
  EXPECT_EQ(result.counters.pauses, 0u);
}

INSTANTIATE_TEST_SUITE_P(Collectives, IdealFabric, testing::ValuesIn(kClosedForms));

// An inner node of the one tree sends all data up and twice down; with two trees every rank sends
// all of it twice, in sum.
TEST(CollectiveRun, TreesTakeTheTimeOfTheirBusiestNIC) {
  Shape shape{
      .algorithm = Algorithm::kTree, .ranks = 15, .bytes = 4 * kBytes, .chunk_bytes = 1u << 17};
  const double whole = wire_time(4 * kBytes);
  EXPECT_NEAR(run_on_star(shape).seconds / whole, 3, 0.1);
  shape.algorithm = Algorithm::kDoubleTree;
  EXPECT_NEAR(run_on_star(shape).seconds / whole, 2, 0.1);
}

// The NICs carry only a shard, and NVLink does not slow it down.
TEST(CollectiveRun, HierarchicalRunsAtTheRateOfAllNICs) {
  const Shape shape{.algorithm = Algorithm::kHierarchical,
                    .ranks = 32,
                    .ranks_per_node = 8,
                    .bytes = 4 * kBytes,
                    .channels = 2,
                    .chunk_bytes = 1u << 19};
  const TestNetwork net = rails(4, 8, 0, {.rate = kRate, .delay = kDelay});
  const Result result = run(shape, net);
  const double nic = 2 * wire_time(4 * kBytes / 8) * 3 / 4;
  EXPECT_NEAR(result.seconds / nic, 1, 0.09);
  EXPECT_EQ(result.network_bytes, 32 * 2 * (4 * kBytes / 8) * 3 / 4);
  EXPECT_EQ(result.nvlink_bytes, 32 * 2 * (4 * kBytes) * 7 / 8);
}

TEST(CollectiveRun, WithinANodeNothingIsSentByNICs) {
  const Shape shape{.ranks = 8, .ranks_per_node = 8, .bytes = kBytes};
  const Result result = run_on_star(shape);
  EXPECT_EQ(result.network_bytes, 0u);
  EXPECT_EQ(result.counters.hops, 0u);
  const NVLinkConfig nvlink;
  const double round =
      static_cast<double>(kBytes) / 8 * 8 / static_cast<double>(nvlink.rate.bps()) +
      nvlink.latency.seconds();
  EXPECT_NEAR(result.seconds / (14 * round), 1, 0.001);
  EXPECT_EQ(result.spent.nvlink, result.spent.sum());
}

TEST(CollectiveRun, StepOverheadIsOfEachRound) {
  const Shape shape{.ranks = 8, .bytes = 8 * 4096};
  const Result plain = run_on_star(shape), slow = run_on_star(shape, {.step_overhead = us(5)});
  EXPECT_NEAR(slow.seconds - plain.seconds, 14 * 5e-6, 1e-7);
  EXPECT_EQ(slow.spent.overhead, us(5 * 14));
}

TEST(CollectiveRun, NoWayIsSaid) {
  const TestNetwork net = rails(2, 2, 0, {});
  const auto schedule =
      collectives::make_schedule({.ranks = 4, .ranks_per_node = 2, .bytes = 4096});
  const Cluster cluster{.gpus_per_node = 2, .nics = net.hosts};
  fabric::Network network(net.topology, network_for(cluster, lossless()));
  const CollectiveRun run(*schedule, cluster, {}, network);
  EXPECT_EQ(run.mistake(), "there is no way from the NIC of rank 1 to that of rank 2");
}

// A ring by number enters each node at another GPU than it has left the last one from: between
// rails, over spines, where flows of one hash value share a link. Rings along rails have a switch
// each.
TEST(CollectiveRun, RailAlignmentTakesAwayCollisions) {
  const TestNetwork net = rails(8, 4, 8, {.rate = kRate, .delay = kDelay});
  Shape shape{.ranks = 32, .ranks_per_node = 4, .bytes = 32u << 18, .channels = 4};
  const auto along_rails = [&] {
    shape.algorithm = Algorithm::kRailRing;
    return run(shape, net);
  };
  const Result by_number = run(shape, net);
  const Result aligned = along_rails();
  EXPECT_GT(by_number.seconds, 1.3 * aligned.seconds);
  EXPECT_GT(by_number.spent.waiting.seconds(), 0.2 * by_number.seconds);
}

struct ExactCourse {
  Algorithm algorithm;
  i64 picoseconds;
  u64 messages, hops;
};

// The executor decides the order in which ranks post, so a change of it shows in the last digit.
TEST(CollectiveRun, CourseIsExactlyAsRecorded) {
  constexpr std::array kCourses = {ExactCourse{Algorithm::kRing, 326386720, 1920, 9600},
                                   ExactCourse{Algorithm::kRailRing, 148208208, 1920, 4800},
                                   ExactCourse{Algorithm::kDoubleTree, 94980664, 1920, 3840},
                                   ExactCourse{Algorithm::kHierarchical, 186839728, 3072, 6144},
                                   ExactCourse{Algorithm::kHalvingDoubling, 51832746, 256, 3328}};
  const TestNetwork net = rails(4, 4, 2, {});
  for (const ExactCourse& course : kCourses) {
    const Shape shape{.algorithm = course.algorithm,
                      .ranks = 16,
                      .ranks_per_node = 4,
                      .bytes = 1u << 20,
                      .channels = 2,
                      .chunk_bytes = 1u << 14};
    const Result result = run(shape, net, {.step_overhead = us(1)});
    EXPECT_EQ(std::llround(result.seconds * 1e12), course.picoseconds) << name_of(shape.algorithm);
    EXPECT_EQ(result.messages, course.messages) << name_of(shape.algorithm);
    EXPECT_EQ(result.counters.hops, course.hops) << name_of(shape.algorithm);
  }
}

// NVLink, where nodes have several GPUs, and what ranks tell each other join hosts without a link.
TEST(CollectiveRun, SameCourseByAnyNumberOfThreads) {
  Shape shape{
      .ranks = 16, .ranks_per_node = 4, .bytes = 1u << 20, .channels = 2, .chunk_bytes = 1u << 14};
  const TestNetwork net = rails(4, 4, 2, {});
  for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kDoubleTree,
                                    Algorithm::kHierarchical, Algorithm::kHalvingDoubling}) {
    shape.algorithm = algorithm;
    const Result one = run(shape, net, {.step_overhead = us(1)});
    for (const u32 threads : {2u, 3u}) {
      const Result several = run(shape, net, {.step_overhead = us(1)}, {}, threads);
      EXPECT_EQ(several.seconds, one.seconds);
      EXPECT_EQ(several.spent.waiting, one.spent.waiting);
      EXPECT_EQ(several.messages, one.messages);
      EXPECT_EQ(several.counters.hops, one.counters.hops);
      EXPECT_EQ(several.counters.marks, one.counters.marks);
      EXPECT_EQ(several.counters.events, one.counters.events);
    }
  }
}

// Without a notice of each other, ranks are simulated together.
// More connections than are made at the start: each NIC sends all it has to, and what is received
// after the last message was sent is one message more.
TEST(CollectiveRun, ConnectionsMayBeMadeWhenTheyAreUsed) {
  const Shape shape{.operation = Operation::kAllToAll,
                    .algorithm = Algorithm::kDirect,
                    .ranks = 260,
                    .bytes = 260 * 4096};
  ASSERT_GT(shape.ranks * (shape.ranks - 1), CollectiveRun::kMadeAtStart);
  const TestNetwork net = star(shape.ranks, {.rate = kRate, .delay = kDelay});
  const Result one = run(shape, net), several = run(shape, net, {}, {}, 3);
  EXPECT_EQ(one.messages, 260u * 259);
  EXPECT_EQ(one.network_bytes, 260u * 259 * 4096);
  EXPECT_EQ(one.seconds, several.seconds);
  EXPECT_EQ(one.counters.hops, several.counters.hops);
  EXPECT_GT(one.seconds, 259 * wire_time(4096));
}

TEST(CollectiveRun, NVLinkMayTakeNoTime) {
  const Shape shape{.algorithm = Algorithm::kHierarchical,
                    .ranks = 16,
                    .ranks_per_node = 4,
                    .bytes = 1u << 20,
                    .channels = 2};
  const TestNetwork net = rails(4, 4, 0, {.rate = kRate, .delay = kDelay});
  const double slow = run(shape, net).seconds;
  const double fast = run(shape, net, {}, {.latency = Duration()}, 2).seconds;
  EXPECT_LT(fast, slow);
  EXPECT_NEAR(fast, slow, 1e-5);
}

TEST(CollectiveRun, SameSeedSameCourse) {
  const Shape shape{.algorithm = Algorithm::kDoubleTree,
                    .ranks = 16,
                    .bytes = 1u << 20,
                    .channels = 2,
                    .chunk_bytes = 1u << 16};
  const TestNetwork net = rails(4, 4, 2, {});
  EXPECT_EQ(run(shape, net).seconds, run(shape, net).seconds);
}

}  // namespace
}  // namespace verbena::jobs
