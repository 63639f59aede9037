// The retransmission of RC QPs, as `verbena run --retransmission` sets it for every device of a
// program.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "host/os/error.h"
#include "transport/rc/limits.h"

namespace verbena::host {

inline constexpr const char* kRetransmissionVariable = "VERBENA_RETRANSMISSION";
inline constexpr std::array<std::string_view, 2> kRetransmissionNames = {"go_back_n",
                                                                         "selective_repeat"};

// Returns nullopt if the name is none of those.
[[nodiscard]] std::optional<Retransmission> retransmission_named(std::string_view name);
// Reads the environment. EINVAL: there is no such name.
[[nodiscard]] Expected<Retransmission> retransmission_from_environment();

}  // namespace verbena::host
