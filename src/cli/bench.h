// `verbena bench gpu-paths`: the ways between two GPUs' memories, as measured here and as the
// simulator's host path has them (jobs/host_path/), side by side.
#pragma once

#include <optional>
#include <string>

#include "cli/failure.h"
#include "cli/requests.h"

namespace verbena::cli {

// MeasuredPath: the figures of one host path, for one message, as verbena-gpu-paths prints them.
struct MeasuredPath {
  double time_us = 0, cpu_us = 0;
  u32 copies = 0;
};
struct MeasuredPaths {
  std::string device;
  std::optional<MeasuredPath> kernel_tcp, host_rdma, gpudirect;
  std::optional<MeasuredPath> cuda_ipc;  // on one host; the simulator has no such path
};
// Returns nullopt if `lines` is not the program's output.
[[nodiscard]] std::optional<MeasuredPaths> read_measured_paths(const std::string& lines);

// `measured`: nullptr if nothing was measured.
[[nodiscard]] std::string gpu_paths_table(const BenchRequest& request,
                                          const MeasuredPaths* measured);

[[nodiscard]] Expected<std::string> bench(const BenchRequest& request);

}  // namespace verbena::cli
