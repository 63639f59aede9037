// `verbena fabric`: simulates the fabric of a scenario for live processes. And what `verbena run`
// needs of it: a host in that fabric, which is started where it does not run.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "cli/failure.h"
#include "cli/requests.h"
#include "host/links/fabric/fabric_protocol.h"

namespace verbena::cli {

// Runs the fabric until a signal, or until the last process leaves it. `print` returns false if it
// cannot print.
[[nodiscard]] Expected<void> fabric(const FabricRequest& request,
                                    const std::function<bool(std::string_view)>& print);

// The host that the request asks for. It is ours until the descriptor, which exec does not close,
// is closed in all processes that have it.
struct ClaimedHost {
  host::FabricPlace place;
  std::optional<host::FabricPortAttributes> port;  // on InfiniBand
};
[[nodiscard]] Expected<ClaimedHost> claim_fabric_host(const RunRequest& request);

}  // namespace verbena::cli
