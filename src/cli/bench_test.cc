#include "cli/bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace verbena::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kLines =
    "device Some Card 80GB\nkernel_tcp 120.50 4 90.10\nhost_rdma 60.00 2 60.00\n"
    "gpudirect 30.25 0 30.00\ncuda_ipc 7.75 0 7.00\n";

TEST(BenchTest, ReadsWhatWasMeasured) {
  const auto paths = read_measured_paths(kLines);
  ASSERT_TRUE(paths.has_value());
  EXPECT_EQ(paths->device, "Some Card 80GB");
  ASSERT_TRUE(paths->kernel_tcp && paths->host_rdma && paths->gpudirect);
  EXPECT_DOUBLE_EQ(paths->kernel_tcp->time_us, 120.5);
  EXPECT_EQ(paths->kernel_tcp->copies, 4u);
  EXPECT_DOUBLE_EQ(paths->gpudirect->cpu_us, 30);
  ASSERT_TRUE(paths->cuda_ipc.has_value());
  EXPECT_DOUBLE_EQ(paths->cuda_ipc->time_us, 7.75);
  EXPECT_FALSE(read_measured_paths("").has_value());
  EXPECT_FALSE(read_measured_paths("device X\nkernel_tcp much\n").has_value());
}

// gpudirect, 1 MiB: two WQE and CQE of 200 ns, a read of 900 ns and a write of 300 ns over PCIe,
// and 1 MiB at 400 Gb/s, 20.97 us.
TEST(BenchTest, PutsPredictionsBesideMeasurements) {
  BenchRequest request;
  request.bytes = 1 << 20;
  const auto paths = read_measured_paths(kLines);
  const std::string table = gpu_paths_table(request, &*paths);
  EXPECT_THAT(table, HasSubstr("Some Card 80GB"));
  EXPECT_THAT(table, HasSubstr("120.5 us"));
  EXPECT_THAT(table, HasSubstr("tcp_offload"));
  EXPECT_THAT(table, HasSubstr("22.57 us"));
  EXPECT_THAT(table, HasSubstr("cuda_ipc           7.8 us"));
}

TEST(BenchTest, WithoutACardNothingIsMeasured) {
  const std::string table = gpu_paths_table({}, nullptr);
  EXPECT_THAT(table, HasSubstr("Measured: nothing"));
  EXPECT_THAT(table, Not(HasSubstr("this host")));
}

}  // namespace
}  // namespace verbena::cli
