// `verbena model`, `verbena bench` and `verbena nvmf`: programs of our own that run on the device,
// as by `verbena run`. They read their words themselves; the device's options may stand anywhere
// among them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/command_line.h"

namespace verbena::cli {

[[nodiscard]] bool is_tool(const std::string& command);

// `words`: with the command first.
[[nodiscard]] Expected<ToolRequest> read_tool_request(std::span<const std::string> words);

// Becomes the program. Returns only if that fails.
[[nodiscard]] Failure start_tool(const ToolRequest& request);

}  // namespace verbena::cli
