// The address on which `verbena nvmf` needs a device.
#pragma once

#include <span>
#include <string>

namespace verbena::cli {

// `arguments`: those of verbena-nvmf. A target's address is that of --listen. A host's address is
// the one from which the kernel sends to the target. Returns "", the default, if neither is known.
[[nodiscard]] std::string nvmf_device_address(std::span<const std::string> arguments);

}  // namespace verbena::cli
