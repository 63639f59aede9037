// The host path: the steps of a message between a GPU's memory and the NIC, for each of the paths:
//   kernel_tcp    through host memory and the kernel's TCP: a copy by the GPU's DMA engine, one by
//                 the CPU into socket buffers, and the same on the other side
//   tcp_offload   TCP whose payload the NIC fetches from the GPU's memory and puts there, while the
//                 CPU sees headers alone: GPUDirect-TCPX, Linux's device memory TCP
//   host_rdma     RDMA to and from host memory, with a copy by the GPU's DMA engine on each side
//   gpudirect     RDMA to and from the GPU's memory: GPUDirect RDMA
//
// A step adds its latency to each message and cannot be faster than its rate. Some steps take a
// whole message before the next step begins (a copy by the DMA engine, whose end the program
// notices); other steps forward the data as it arrives. CPU time is that of the host's cores. Each
// number has its source; "split" marks a measured sum that we divided.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "base/rate.h"
#include "fabric/technology.h"

namespace verbena::jobs {

enum class HostPathKind : u8 { kKernelTCP, kTCPOffload, kHostRDMA, kGPUDirect };

struct HostStep {
  enum class Passing : u8 { kThrough, kWhole };

  std::string_view name;
  Duration latency{};  // of each message
  // The rate of the step, or of one core if the step runs on the CPU. Unlimited if other steps are
  // slower.
  Rate rate = Rate::unlimited();
  Passing passing = Passing::kThrough;
  bool is_of_cpu = false;      // each byte is
  Duration cpu_per_message{};  // beside that of bytes, which is 1 / rate, where it is of the CPU
  std::string_view source;

  [[nodiscard]] Duration cpu_time(u64 bytes) const;
};

struct HostPathModel {
  std::string_view name;
  std::string_view what;
  std::span<const HostStep> sending, receiving;
  bool is_tcp = false;  // else RDMA: RoCE, InfiniBand or iWARP
};

[[nodiscard]] const HostPathModel& model_of(HostPathKind kind);
inline constexpr HostPathKind kHostPathKinds[] = {
    HostPathKind::kKernelTCP, HostPathKind::kTCPOffload, HostPathKind::kHostRDMA,
    HostPathKind::kGPUDirect};

// As a job has it.
struct HostPathConfig {
  std::optional<HostPathKind> kind;  // if none, the NIC reaches the data at no cost
  u32 cores = 4;                     // of the CPU that serve one NIC, each way
};

// One direction of a path, in numbers.
struct HostPathSums {
  Duration latency{};                // of a message without bytes
  Rate whole = Rate::unlimited();    // of steps that take whole messages; unlimited if none does
  Rate through = Rate::unlimited();  // of the slowest of the others, with all cores
};
[[nodiscard]] HostPathSums sums_of(std::span<const HostStep> steps, u32 cores);

}  // namespace verbena::jobs
