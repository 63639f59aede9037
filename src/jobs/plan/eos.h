// Tuning for Arista EOS: text of its configuration.
//   Arista Validated Designs (aristanetworks/avd), eos_cli_config_gen, input variables: QOS (map
//   dscp), QOS profiles (trust, priority_flow_control, uc_tx_queues, random_detect.ecn with its
//   units), Ethernet interfaces (service_profile)
//
//   AMD, ROCm documentation, "Match switch QoS configuration to NIC for DCQCN": an Arista 7388
// How a headroom is set was found in no public manual.
#pragma once

#include <span>
#include <string>

#include "jobs/plan/tuning.h"

namespace verbena::jobs {

// `ports`: that are to have it; none: Ethernet1/1 stands for them.
[[nodiscard]] std::string eos_config(const TuningRequest& request, const Tuning& tuning,
                                     std::span<const std::string> ports);

}  // namespace verbena::jobs
