// On which address `verbena nvmf` needs a device.
#pragma once

#include <span>
#include <string>

namespace verbena::cli {

// `arguments`: of verbena-nvmf. A target's is that of --listen; a host's is the one that the kernel
// sends from to the target. "": neither is known, so it is the default.
[[nodiscard]] std::string nvmf_device_address(std::span<const std::string> arguments);

}  // namespace verbena::cli
