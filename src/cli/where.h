// The addresses of devices: --address, else VERBENA_ADDRESS, else the default
// (host/network/local_address.h).
#pragma once

#include <string>
#include <vector>

#include "cli/failure.h"
#include "host/network/local_address.h"

namespace verbena::cli {

inline constexpr const char* kAddressVariable = "VERBENA_ADDRESS";

// `option`: the value of --address; "": not given.
[[nodiscard]] Expected<std::vector<host::LocalAddress>> addresses_of(const std::string& option);

}  // namespace verbena::cli
