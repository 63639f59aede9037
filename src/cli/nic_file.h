// nic.yaml: the virtual functions of `verbena nic` (docs/security.md).
#pragma once

#include <string>

#include "cli/failure.h"
#include "host/nic/nic_config.h"

namespace verbena::cli {

// The text of a file; `name`: of the file, for messages.
[[nodiscard]] Expected<host::NICConfig> read_nic_config(const std::string& text,
                                                        const std::string& name);

}  // namespace verbena::cli
