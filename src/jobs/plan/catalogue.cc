#include "jobs/plan/catalogue.h"

#include <array>

namespace verbena::jobs {
namespace {

constexpr std::array kNICs = {
    NICModel{.name = "ConnectX-7",
             .rate = gbps(400),
             .ports = "1 x 400 Gb/s (OSFP) or 2 x 200 Gb/s (QSFP112)",
             .host = "PCIe 5.0 x16",
             .technologies = "InfiniBand NDR, RoCEv2",
             .most_watts = std::nullopt,
             .source = "NVIDIA ConnectX-7 Adapter Cards User Manual, Introduction"},
    NICModel{.name = "BlueField-3",
             .rate = gbps(400),
             .ports = "1 x 400 Gb/s or 2 x 200 Gb/s (QSFP112)",
             .host = "PCIe 5.0 x16",
             .technologies = "InfiniBand NDR, RoCEv2",
             .most_watts = 150,
             .source = "NVIDIA BlueField-3 DPU Controller User Manual, Introduction"},
    NICModel{.name = "Intel E810-CQDA2",
             .rate = gbps(100),
             .ports = "2 x 100 Gb/s (QSFP28)",
             .host = "PCIe 4.0 x16",
             .technologies = "iWARP, RoCEv2",
             .most_watts = 21,
             .source = "ServeTheHome, Intel E810-CQDA2 review (16.6 to 20.7 W measured)"},
    NICModel{.name = "Broadcom BCM57608",
             .rate = gbps(400),
             .ports = "1 x 400 Gb/s or 2 x 200 Gb/s",
             .host = "PCIe 5.0 x16",
             .technologies = "RoCEv2",
             .most_watts = std::nullopt,
             .source = "Broadcom, 400G/200G Ethernet NICs, product line"},
};

constexpr std::array kSwitches = {
    SwitchModel{.name = "Spectrum-4 SN5600",
                .ports = 64,
                .port_rate = gbps(800),
                .buffer_octets = 0,
                .technologies = "Ethernet: PFC, ECN, adaptive routing",
                .source = "NVIDIA Spectrum-4 SN5000 Hardware User Manual"},
    SwitchModel{.name = "Spectrum-3 SN4700",
                .ports = 32,
                .port_rate = gbps(400),
                .buffer_octets = 64u << 20,
                .technologies = "Ethernet: PFC, ECN",
                .source = "NVIDIA Spectrum-3 SN4000 Hardware User Manual"},
    SwitchModel{.name = "Tomahawk 5",
                .ports = 64,
                .port_rate = gbps(800),
                .buffer_octets = 0,
                .technologies = "Ethernet: PFC, ECN, dynamic load balancing",
                .source = "Broadcom, StrataXGS Tomahawk 5 (BCM78900), announcement of August 2022"},
    SwitchModel{.name = "Quantum-2 QM9700",
                .ports = 64,
                .port_rate = gbps(400),
                .buffer_octets = 0,
                .technologies = "InfiniBand NDR: credits, adaptive routing, SHARPv3",
                .source = "NVIDIA QM9700/QM9790 1U NDR 400Gb/s Switch Systems User Manual"},
};

}  // namespace

std::span<const NICModel> nic_models() { return kNICs; }
std::span<const SwitchModel> switch_models() { return kSwitches; }

}  // namespace verbena::jobs
