// The checks of `verbena doctor` on the path to a peer.
#pragma once

#include <vector>

#include "base/time.h"
#include "cli/finding.h"
#include "host/network/local_address.h"

namespace verbena::cli {

[[nodiscard]] Findings examine_peer(const std::vector<host::LocalAddress>& addresses,
                                    const std::string& peer);

// Round trips of those that were answered, of `sent`.
[[nodiscard]] Finding judge_round_trips(std::vector<Duration> round_trips, u32 sent);

}  // namespace verbena::cli
