#include "jobs/presets.h"

#include <array>

namespace verbena::jobs {
namespace {

// Delays: 5 ns/m, for cables of 30 m. Switches have the latency of their technology.
constexpr std::array kPresets = {
    Preset{.name = "cloud_roce_3200",
           .source =
               "Google Cloud, A3 Ultra and A4 machine types: 8 GPUs, 8 ConnectX-7, 3,200 Gb/s of "
               "RoCE, each NIC aligned with one GPU (Networking and GPU machines). 32 nodes here",
           .yaml = R"(
topology: {kind: rail_optimized, nodes: 32, rails: 8, spines: 32}
links: {rate: 400Gbps, delay: 150ns}
hosts: {congestion_control: dcqcn}
collective: {nvlink: {rate: 3.6Tbps, latency: 700ns}}
)"},
    Preset{
        .name = "cloud_tcp_1600",
        .source =
            "Google Cloud, A3 Mega: 8 H100, GPUDirect-TCPXO, 1,600 Gb/s for the GPUs (Networking "
            "and GPU machines). Simulated as TCP with payload in GPU memory, headers for the CPU",
        .yaml = R"(
technology: tcp
topology: {kind: rail_optimized, nodes: 32, rails: 8, spines: 32}
links: {rate: 200Gbps, delay: 150ns}
hosts: {path: {kind: tcp_offload, cores: 8}}
tcp: {congestion_control: dctcp, rto_min: 10ms}
collective: {nvlink: {rate: 3.6Tbps, latency: 700ns}}
)"},
    Preset{
        .name = "dgx_h100_superpod",
        .source =
            "NVIDIA DGX SuperPOD Reference Architecture, DGX H100 (RA-11333-001): a scalable unit "
            "of 32 nodes, 8 NDR NICs each, 8 QM9700 leaf switches with half their ports up. "
            "InfiniBand, routed as a fat tree; the switches' latency is beside the delay",
        .yaml = R"(
technology: infiniband
topology: {kind: rail_optimized, nodes: 32, rails: 8, spines: 32}
links: {rate: NDR, delay: 150ns}
collective: {nvlink: {rate: 3.6Tbps, latency: 700ns}}
)",
        .nic = "ConnectX-7",
        .switch_model = "Quantum-2 QM9700"},
    Preset{.name = "spectrum_x",
           .source =
               "NVIDIA Spectrum-X: BlueField-3 SuperNICs of 400 Gb/s on SN5600 switches, adaptive "
               "routing: frames are spread over all uplinks, one by one, and the NICs place what "
               "comes out of order, here by selective repeat",
           .yaml = R"(
topology: {kind: rail_optimized, nodes: 32, rails: 8, spines: 32}
links: {rate: 400Gbps, delay: 150ns}
switch: {ecmp: spray}
hosts: {congestion_control: dcqcn, retransmission: {kind: selective_repeat, reordering: 64}}
collective: {nvlink: {rate: 3.6Tbps, latency: 700ns}}
)",
           .nic = "BlueField-3",
           .switch_model = "Spectrum-4 SN5600"},
    Preset{
        .name = "dual_plane",
        .source =
            "Alibaba HPN (Qian et al., SIGCOMM 2024): 8 GPUs with a NIC each of two ports of 200 "
            "Gb/s, which stand on two ToR switches of one rail, and these in two planes; 400 Gb/s "
            "between switches. Two segments of 16 nodes here, of 128 there",
        .yaml = R"(
topology: {kind: dual_tor, segments: 2, hosts_per_segment: 16, rails: 8, spines_per_plane: 8}
links: {rate: 200Gbps, delay: 150ns, fabric: {rate: 400Gbps, delay: 150ns}}
hosts: {congestion_control: dcqcn}
collective: {channels: 16, nvlink: {rate: 3.6Tbps, latency: 700ns}}
)",
        .nic = "ConnectX-7"},
    Preset{
        .name = "ethernet_100g",
        .source =
            "32 nodes with 2 GPUs and 2 NICs of 100 Gb/s (Intel E810-CQDA2), GPUs joined by PCIe "
            "4.0 x16, whose 32 GB/s are its rate; leaves 2:1 oversubscribed",
        .yaml = R"(
topology: {kind: rail_optimized, nodes: 32, rails: 2, spines: 16}
links: {rate: 100Gbps, delay: 150ns}
hosts: {congestion_control: dcqcn}
collective: {nvlink: {rate: 256Gbps, latency: 1us}}
)",
        .nic = "Intel E810-CQDA2"},
};

}  // namespace

std::span<const Preset> presets() { return kPresets; }

const Preset* preset_named(std::string_view name) {
  for (const Preset& preset : kPresets)
    if (preset.name == name) return &preset;
  return nullptr;
}

}  // namespace verbena::jobs
