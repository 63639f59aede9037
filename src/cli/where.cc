#include "cli/where.h"

#include <cstdlib>

#include "host/nic/nic_protocol.h"

namespace verbena::cli {

Expected<std::vector<host::LocalAddress>> addresses_of(const std::string& option) {
  const char* const variable = std::getenv(kAddressVariable);
  std::string from_environment = variable != nullptr ? variable : "";
  if (option.empty() && from_environment.empty())
    if (const auto of_nic = host::chosen_address_from_environment()) from_environment = *of_nic;
  auto addresses = host::choose_local_addresses(option.empty() ? from_environment : option);
  if (!addresses) return failure(kExitCannot, addresses.error().message);
  return std::move(*addresses);
}

}  // namespace verbena::cli
