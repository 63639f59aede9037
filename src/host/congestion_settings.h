// Which congestion control `verbena run --cc` asks of every device of a program.
#pragma once

#include "congestion/parameters.h"
#include "device/pacing_config.h"
#include "host/error.h"

namespace verbena::host {

inline constexpr const char* kCongestionVariable = "VERBENA_CC";  // see congestion/presets.h

struct CongestionSettings {
  CongestionParameters congestion;
  PacingConfig pacing;
};

// From the environment, for an interface of this speed (0: not known). EINVAL: no such algorithm.
[[nodiscard]] Expected<CongestionSettings> congestion_from_environment(u64 link_speed_mbps);

}  // namespace verbena::host
