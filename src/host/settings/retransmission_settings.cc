#include "host/settings/retransmission_settings.h"

#include <cerrno>
#include <cstdlib>
#include <string>

namespace verbena::host {

std::optional<Retransmission> retransmission_named(std::string_view name) {
  if (name == kRetransmissionNames[0]) return Retransmission::kGoBackN;
  if (name == kRetransmissionNames[1]) return Retransmission::kSelectiveRepeat;
  return std::nullopt;
}

Expected<Retransmission> retransmission_from_environment() {
  const char* const text = std::getenv(kRetransmissionVariable);
  if (text == nullptr) return Retransmission::kGoBackN;
  if (const std::optional<Retransmission> known = retransmission_named(text)) return *known;
  return failure(EINVAL, std::string(kRetransmissionVariable) + "=" + text +
                             " is neither go_back_n nor selective_repeat");
}

}  // namespace verbena::host
