#include "cli/where.h"

#include <cstdlib>

#include "host/nic/nic_protocol.h"

namespace verbena::cli {

Expected<std::vector<host::LocalAddress>> addresses_of(const std::string& option) {
  const char* const variable = std::getenv(kAddressVariable);
  const std::string from_environment = variable != nullptr ? variable : "";
  const auto choice = host::address_on_nic_or_host(option.empty() ? from_environment : option);
  if (!choice) return failure(kExitCannot, choice.error().message);
  auto addresses = host::choose_local_addresses(*choice);
  if (!addresses) return failure(kExitCannot, addresses.error().message);
  return std::move(*addresses);
}

}  // namespace verbena::cli
