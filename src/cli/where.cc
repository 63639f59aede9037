#include "cli/where.h"

#include <cstdlib>

namespace verbena::cli {

Expected<std::vector<host::LocalAddress>> addresses_of(const std::string& option) {
  const char* const variable = std::getenv(kAddressVariable);
  const std::string from_environment = variable != nullptr ? variable : "";
  auto addresses = host::choose_local_addresses(option.empty() ? from_environment : option);
  if (!addresses) return failure(kExitCannot, addresses.error().message);
  return std::move(*addresses);
}

}  // namespace verbena::cli
