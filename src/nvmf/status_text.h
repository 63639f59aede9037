// A status of a command in words for the user: "status 0x0281 (unrecovered read error)".
#pragma once

#include <string>

#include "wire/nvme/status.h"

namespace verbena::nvmf {

[[nodiscard]] std::string describe(nvme::Status status);

}  // namespace verbena::nvmf
