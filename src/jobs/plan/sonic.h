// Tuning for SONiC: tables of config_db.json.
//   SONiC Configuration Database Manual: Buffer PG, Buffer profile, DSCP_TO_TC_MAP, Port QoS map,
//   Queue, TC to Queue map, WRED_PROFILE
#pragma once

#include <span>
#include <string>

#include "jobs/plan/tuning.h"

namespace verbena::jobs {

// `ports`: that are to have it; none: Ethernet0 stands for them.
[[nodiscard]] std::string sonic_config(const TuningRequest& request, const Tuning& tuning,
                                       std::span<const std::string> ports);

}  // namespace verbena::jobs
