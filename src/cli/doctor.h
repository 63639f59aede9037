// `verbena doctor`: what is right and wrong here, and on the way to a peer.
#pragma once

#include "cli/failure.h"
#include "cli/finding.h"
#include "cli/requests.h"
#include "cli/stats.h"

namespace verbena::cli {

[[nodiscard]] Findings examine(const DoctorRequest& request);

// Answers the doctors of others until a signal ends it.
[[nodiscard]] Expected<void> listen_for_doctors(const DoctorRequest& request, const Print& print);

}  // namespace verbena::cli
