// The congestion control that `verbena run --cc` sets for every device of a program.
#pragma once

#include <array>
#include <string_view>

#include "congestion/parameters.h"
#include "device/port/pacing_config.h"
#include "host/os/error.h"

namespace verbena::host {

inline constexpr const char* kCongestionVariable = "VERBENA_CC";
// The presets of congestion/presets.h that fit. The others need round trips that no scheduler
// disturbs, or switches that report their own state.
inline constexpr std::array<std::string_view, 2> kCongestionNames = {"off", "dcqcn"};

struct CongestionSettings {
  CongestionParameters congestion;
  PacingConfig pacing;
};

// Reads the environment, for an interface of this speed (0: unknown). EINVAL: no such algorithm.
[[nodiscard]] Expected<CongestionSettings> congestion_from_environment(u64 link_speed_mbps);
// The same for a device in a simulated fabric, whose time is slower by `scale`: as a card has it.
[[nodiscard]] Expected<CongestionSettings> congestion_in_fabric(Rate line_rate, u32 scale);

}  // namespace verbena::host
