// The measures of a device against senders that guess, as the user sets them. VERBENA_HARDEN,
// comma-separated:
//   qpn            QPNs are drawn at random, not counted up
//   zero           registered memory is overwritten with zeros when it is deregistered
//   refusals[=N]   after N refused requests in a second (100) a source is not heard for a while
#pragma once

#include <string_view>

#include "device/hardening.h"
#include "host/os/error.h"

namespace verbena::host {

inline constexpr const char* kHardenVariable = "VERBENA_HARDEN";

struct HardeningSettings {
  HardeningConfig device{};
  bool zeroes_memory = false;
};

// EINVAL: no such word.
[[nodiscard]] Expected<HardeningSettings> hardening_settings(std::string_view text);
// Unset or empty: nothing.
[[nodiscard]] Expected<HardeningSettings> hardening_from_environment();

}  // namespace verbena::host
