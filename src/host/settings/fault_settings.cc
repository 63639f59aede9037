#include "host/settings/fault_settings.h"

#include <cerrno>
#include <cstdlib>

#include "faults/spec.h"
#include "faults/values.h"

namespace verbena::host {

Expected<FaultSettings> faults_from_environment() {
  FaultSettings settings;
  if (const char* const text = std::getenv(kSeedVariable)) {
    const std::optional<u64> seed = faults::parse_number(text);
    if (!seed)
      return failure(EINVAL, std::string(kSeedVariable).append(" is no number: ").append(text));
    settings.seed = *seed;
  }
  if (const char* const text = std::getenv(kFaultVariable)) {
    auto rules = faults::parse_rules(text);
    if (!rules) return failure(EINVAL, rules.error());
    settings.rules = std::move(*rules);
  }
  return settings;
}

}  // namespace verbena::host
