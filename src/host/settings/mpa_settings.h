// How iWARP connections are set up, as the user says it. VERBENA_IWARP: comma-separated words.
//   crc=on|off    whether this end asks for CRCs (on); they are used where either end asks
//   mpa=1|2       the revision that connections begin with (2)
//   p2p=on|off    whether a ready-to-receive message is offered (on). Revision 2
#pragma once

#include <string_view>

#include "connect/mpa_set_up.h"
#include "host/os/error.h"

namespace verbena::host {

inline constexpr const char* kIWARPVariable = "VERBENA_IWARP";

// EINVAL: no such word.
[[nodiscard]] Expected<MPAConfig> mpa_settings(std::string_view text);
// Unset or empty: the defaults.
[[nodiscard]] Expected<MPAConfig> mpa_settings_from_environment();

}  // namespace verbena::host
