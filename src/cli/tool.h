// `verbena model`, `verbena bench kv` and `verbena nvmf`: programs of our own that run on the
// device, as by `verbena run`. They read their words themselves; the device's options may stand
// anywhere among them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/failure.h"
#include "cli/requests.h"

namespace verbena::cli {

// `words`: with the command first, or none. `bench` is one with `kv` behind it.
[[nodiscard]] bool is_tool(std::span<const std::string> words);

// `words`: with the command first.
[[nodiscard]] Expected<ToolRequest> read_tool_request(std::span<const std::string> words);

// Becomes the program. Returns only if that fails.
[[nodiscard]] Failure start_tool(const ToolRequest& request);

}  // namespace verbena::cli
