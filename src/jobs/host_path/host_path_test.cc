#include "jobs/host_path/host_path.h"

#include <gtest/gtest.h>

#include "jobs/host_path/host_side.h"
#include "jobs/host_path/table.h"

namespace verbena::jobs {
namespace {

constexpr u64 kMessage = 512 * 1024;

// One core with one connection, as Cai et al. have measured it.
TEST(HostPath, ACoreOfTheKernelsTCPHasItsMeasuredRate) {
  const HostPathModel& kernel = model_of(HostPathKind::kKernelTCP);
  EXPECT_NEAR(static_cast<double>(sums_of(kernel.sending, 1).through.bps()) / 89e9, 1, 0.001);
  EXPECT_NEAR(static_cast<double>(sums_of(kernel.receiving, 1).through.bps()) / 42e9, 1, 0.001);
  EXPECT_NEAR(static_cast<double>(sums_of(kernel.receiving, 4).through.bps()) / 168e9, 1, 0.001);
}

TEST(HostPath, EachWayIsBetterThanTheOneBefore) {
  Duration before = sec(1);
  for (const HostPathKind kind :
       {HostPathKind::kKernelTCP, HostPathKind::kHostRDMA, HostPathKind::kGPUDirect}) {
    const HostPathModel& model = model_of(kind);
    const Duration latency =
        sums_of(model.sending, 4).latency + sums_of(model.receiving, 4).latency;
    EXPECT_LT(latency, before) << model.name;
    before = latency;
    for (const std::span<const HostStep> steps : {model.sending, model.receiving})
      for (const HostStep& step : steps) EXPECT_FALSE(step.source.empty()) << step.name;
  }
  const HostPathModel& offload = model_of(HostPathKind::kTCPOffload);
  const HostPathModel& kernel = model_of(HostPathKind::kKernelTCP);
  EXPECT_GT(sums_of(offload.receiving, 1).through, sums_of(kernel.receiving, 1).through);
  EXPECT_LT(sums_of(offload.sending, 1).latency, sums_of(kernel.sending, 1).latency);
}

TEST(HostPath, OnlyTheCPUsTimeGrowsWithBytes) {
  for (const HostPathKind kind : kHostPathKinds) {
    Duration small, large;
    for (const HostStep& step : model_of(kind).receiving) {
      small = small + step.cpu_time(0);
      large = large + step.cpu_time(kMessage);
    }
    if (model_of(kind).is_tcp) {
      EXPECT_GT(large - small, us(20));
    } else {
      EXPECT_EQ(large, small);
    }
  }
}

TEST(HostSide, MessagesPassOneAfterAnother) {
  const HostPathSums path{.latency = us(1), .whole = gbps(400), .through = gbps(100)};
  HostSide side;
  const Duration copy = time_at(gbps(400), kMessage), through = time_at(gbps(100), kMessage);
  const Time first = side.send(path, kMessage, gbps(200), Time());
  EXPECT_EQ(first, Time() + copy + us(1));
  // The second is copied meanwhile, and waits for the rest of the first.
  EXPECT_EQ(side.send(path, kMessage, gbps(200), Time()), first + through);
}

// The NIC takes turns among messages that reach it together, as it does without a path.
TEST(HostSide, WhatIsAsFastAsTheLinePutsNoMessageBehindAnother) {
  const HostPathSums path{.latency = us(1), .through = gbps(100)};
  HostSide side;
  EXPECT_EQ(side.send(path, kMessage, gbps(100), Time()), Time() + us(1));
  EXPECT_EQ(side.send(path, kMessage, gbps(100), Time()), Time() + us(1));
}

TEST(HostSide, WhatIsAsFastAsTheLineAddsItsLatencyAlone) {
  const HostPathSums path{.latency = us(1), .through = gbps(100)};
  HostSide side;
  const Duration message = time_at(gbps(100), kMessage);
  EXPECT_EQ(side.receive(path, kMessage, gbps(100), Time() + message), Time() + message + us(1));
  HostSide slower;
  EXPECT_EQ(slower.receive(path, kMessage, gbps(200), Time() + message),
            Time() + message / 2 + message + us(1));
}

TEST(HostPath, TheTableHasEachStepAndItsSource) {
  const std::string table = host_path_table(4);
  for (const HostPathKind kind : kHostPathKinds) {
    EXPECT_NE(table.find(model_of(kind).name), std::string::npos);
    for (const HostStep& step : model_of(kind).sending)
      EXPECT_NE(table.find(step.name), std::string::npos) << step.name;
  }
}

}  // namespace
}  // namespace verbena::jobs
