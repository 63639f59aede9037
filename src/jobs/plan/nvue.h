// Tuning for Cumulus Linux 5: commands of NVUE, which hold for all ports of the switch.
//   NVIDIA, Cumulus Linux User Guide: Quality of Service, "Priority Flow Control (PFC)",
//   "Congestion Control (ECN)", "Egress Queues", "Egress Scheduler"; RDMA over Converged Ethernet -
//   RoCE, "Change RoCE Configuration"
//
//   NVIDIA, NVUE Command Reference: Set and Unset Commands, QoS
// The headroom is not set: the guide leaves port-buffer and xoff-threshold to the switch, which has
// them from the length of the cables.
#pragma once

#include <string>

#include "jobs/plan/tuning.h"

namespace verbena::jobs {

[[nodiscard]] std::string nvue_commands(const TuningRequest& request, const Tuning& tuning);

}  // namespace verbena::jobs
