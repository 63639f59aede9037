#include "jobs/host_path/host_path.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "jobs/nvlink_ports.h"

namespace verbena::jobs {
namespace {

using Passing = HostStep::Passing;

// PCI Express 5.0 x16: 32 GT/s on 16 lanes at 128/130 are 504 Gb/s; of packets with 256 bytes of
// payload and 28 of header and framing, 454 Gb/s. PCI-SIG, PCI Express Base Specification 5.0.
constexpr Rate kPCIe = gbps(454);
constexpr std::string_view kPCIeSource =
    "PCIe 5.0 x16 with 256 bytes in a TLP; latency: Neugebauer et al., SIGCOMM 2018, 3 and 6";
// A read over PCIe takes 0.5 to 1 us, a posted write half of it; a doorbell before the read.
constexpr Duration kRead = ns(900), kWrite = ns(300);

// cudaMemcpy: 6 to 7 us before bytes move (README of NVIDIA's GDRCopy).
constexpr HostStep kToHost = {.name = "GPU memory to host memory (cudaMemcpy)",
                              .latency = ns(6500),
                              .rate = kPCIe,
                              .passing = Passing::kWhole,
                              .cpu_per_message = ns(6500),
                              .source = "latency: NVIDIA GDRCopy, README (6 to 7 us); rate: PCIe"};
constexpr HostStep kToGPU = {.name = "host memory to GPU memory (cudaMemcpy)",
                             .latency = ns(6500),
                             .rate = kPCIe,
                             .passing = Passing::kWhole,
                             .cpu_per_message = ns(6500),
                             .source = "latency: NVIDIA GDRCopy, README (6 to 7 us); rate: PCIe"};

// A core sends 89 Gb/s and receives 42 Gb/s, half of which is the copy: Cai et al., Understanding
// Host Network Stack Overheads, SIGCOMM 2021, 3.1 and 3.4 (TSO, GRO, jumbo frames, aRFS; 3.4 GHz).
// TCP from program to program takes 23 us there and back between hosts at one switch (Marty et al.,
// Snap, SOSP 2019, 5.1); without PCIe and the wire, 9 us are left for each way: split 3 to 6.
constexpr std::string_view kStackSource =
    "rate: Cai et al., SIGCOMM 2021, 3.1 and 3.4, split half; latency: Marty et al. (Snap), SOSP "
    "2019, 5.1, split";
constexpr Rate kHalfOfSending = gbps(178), kHalfOfReceiving = gbps(84);

constexpr std::array kKernelSending = {kToHost,
                                       HostStep{.name = "system call, copy into socket buffers",
                                                .latency = ns(1000),
                                                .rate = kHalfOfSending,
                                                .is_of_cpu = true,
                                                .cpu_per_message = ns(1000),
                                                .source = kStackSource},
                                       HostStep{.name = "TCP, IP, queueing discipline, driver",
                                                .latency = ns(2000),
                                                .rate = kHalfOfSending,
                                                .is_of_cpu = true,
                                                .cpu_per_message = ns(2000),
                                                .source = kStackSource},
                                       HostStep{.name = "NIC fetches from host memory",
                                                .latency = kRead,
                                                .rate = kPCIe,
                                                .source = kPCIeSource}};
constexpr std::array kKernelReceiving = {
    HostStep{.name = "NIC writes to host memory",
             .latency = kWrite,
             .rate = kPCIe,
             .source = kPCIeSource},
    HostStep{.name = "interrupt, driver, GRO, IP, TCP",
             .latency = ns(3000),
             .rate = kHalfOfReceiving,
             .is_of_cpu = true,
             .cpu_per_message = ns(3000),
             .source = kStackSource},
    HostStep{.name = "wake-up, system call, copy to the program",
             .latency = ns(3000),
             .rate = kHalfOfReceiving,
             .is_of_cpu = true,
             .cpu_per_message = ns(3000),
             .source = kStackSource},
    kToGPU};

// The same without copies: what is left of the CPU's work is by headers.
constexpr std::array kOffloadSending = {
    HostStep{.name = "system call; TCP, IP, driver: headers alone",
             .latency = ns(3000),
             .rate = kHalfOfSending,
             .is_of_cpu = true,
             .cpu_per_message = ns(3000),
             .source = kStackSource},
    HostStep{.name = "NIC fetches headers from the host, payload from the GPU",
             .latency = kRead,
             .rate = kPCIe,
             .source = kPCIeSource}};
constexpr std::array kOffloadReceiving = {
    HostStep{.name = "NIC writes payload to the GPU, headers to the host",
             .latency = kWrite,
             .rate = kPCIe,
             .source = "header split: Linux, Documentation/networking/devmem.rst; as PCIe"},
    HostStep{.name = "interrupt, driver, IP, TCP: headers alone; wake-up",
             .latency = ns(6000),
             .rate = kHalfOfReceiving,
             .is_of_cpu = true,
             .cpu_per_message = ns(6000),
             .source = kStackSource},
    HostStep{.name = "a kernel on the GPU puts segments together",
             .latency = ns(6500),
             .source = "as a cudaMemcpy's beginning; memory of 3.35 TB/s (H100) is no limit"}};

constexpr HostStep kPost = {.name = "WQE and doorbell",
                            .latency = ns(200),
                            .cpu_per_message = ns(200),
                            .source =
                                "Kalia et al., Design Guidelines for High Performance RDMA "
                                "Systems, ATC 2016, 3: a posted write by the CPU"};
constexpr HostStep kPoll = {.name = "CQE, found by polling",
                            .latency = ns(200),
                            .cpu_per_message = ns(200),
                            .source = "as the WQE"};

constexpr std::array kHostRDMASending = {
    kToHost, kPost,
    HostStep{.name = "NIC fetches WQE and payload from host memory",
             .latency = kRead,
             .rate = kPCIe,
             .source = kPCIeSource}};
constexpr std::array kHostRDMAReceiving = {
    HostStep{.name = "NIC writes payload and CQE to host memory",
             .latency = kWrite,
             .rate = kPCIe,
             .source = kPCIeSource},
    kPoll, kToGPU};
constexpr std::array kGPUDirectSending = {
    kPost, HostStep{.name = "NIC fetches payload from GPU memory",
                    .latency = kRead,
                    .rate = kPCIe,
                    .source = "NVIDIA, GPUDirect RDMA: below one PCIe switch; as PCIe"}};
constexpr std::array kGPUDirectReceiving = {
    HostStep{.name = "NIC writes payload to GPU memory",
             .latency = kWrite,
             .rate = kPCIe,
             .source = "NVIDIA, GPUDirect RDMA: below one PCIe switch; as PCIe"},
    kPoll};

constexpr HostPathModel kKernelTCP = {.name = "kernel_tcp",
                                      .what = "host memory and the kernel's TCP",
                                      .sending = kKernelSending,
                                      .receiving = kKernelReceiving,
                                      .is_tcp = true};
constexpr HostPathModel kTCPOffload = {.name = "tcp_offload",
                                       .what = "TCP, payload in GPU memory, headers in the host's",
                                       .sending = kOffloadSending,
                                       .receiving = kOffloadReceiving,
                                       .is_tcp = true};
constexpr HostPathModel kHostRDMA = {.name = "host_rdma",
                                     .what = "host memory and RDMA",
                                     .sending = kHostRDMASending,
                                     .receiving = kHostRDMAReceiving};
constexpr HostPathModel kGPUDirect = {.name = "gpudirect",
                                      .what = "GPUDirect RDMA",
                                      .sending = kGPUDirectSending,
                                      .receiving = kGPUDirectReceiving};

}  // namespace

Duration HostStep::cpu_time(u64 bytes) const {
  return is_of_cpu ? cpu_per_message + time_at(rate, bytes) : cpu_per_message;
}

const HostPathModel& model_of(HostPathKind kind) {
  switch (kind) {
    case HostPathKind::kKernelTCP: return kKernelTCP;
    case HostPathKind::kTCPOffload: return kTCPOffload;
    case HostPathKind::kHostRDMA: return kHostRDMA;
    case HostPathKind::kGPUDirect: return kGPUDirect;
  }
  CHECK_UNREACHABLE();
}

// A core does all steps of the CPU for what it serves, one after another: their times add up.
HostPathSums sums_of(std::span<const HostStep> steps, u32 cores) {
  HostPathSums sums;
  double core_seconds_per_bit = 0;
  for (const HostStep& step : steps) {
    sums.latency = sums.latency + step.latency;
    if (step.is_of_cpu)
      core_seconds_per_bit += 1 / static_cast<double>(step.rate.bps());
    else if (step.passing == Passing::kWhole)
      sums.whole = std::min(sums.whole, step.rate);
    else
      sums.through = std::min(sums.through, step.rate);
  }
  if (core_seconds_per_bit == 0) return sums;
  const double bps = cores / core_seconds_per_bit;
  sums.through = std::min(sums.through, Rate::from_bps(static_cast<u64>(bps)));
  return sums;
}

}  // namespace verbena::jobs
