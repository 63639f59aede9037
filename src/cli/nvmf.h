// verbena nvmf: starts verbena-nvmf on Verbena's device.
#pragma once

#include "cli/command_line.h"

namespace verbena::cli {

// Returns only if the program cannot be started.
[[nodiscard]] Failure nvmf(const NVMfRequest& request);

// The address of the device: the one that a target listens on, or from which a host reaches its
// target. "": the arguments name none.
[[nodiscard]] std::string device_address(std::span<const std::string> arguments);

}  // namespace verbena::cli
