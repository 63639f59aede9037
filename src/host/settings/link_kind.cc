#include "host/settings/link_kind.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>

#include "host/links/fabric/fabric_protocol.h"

namespace verbena::host {

std::string_view name_of(LinkKind kind) { return kLinkNames[static_cast<std::size_t>(kind)]; }

std::optional<LinkKind> link_kind_named(std::string_view name) {
  const auto found = std::ranges::find(kLinkNames, name);
  if (found == kLinkNames.end()) return std::nullopt;
  return static_cast<LinkKind>(found - kLinkNames.begin());
}

Expected<LinkKind> link_kind_from_environment() {
  const char* const text = std::getenv(kLinkVariable);
  if (text == nullptr || *text == '\0') return LinkKind::kUDP;
  if (const std::optional<LinkKind> kind = link_kind_named(text)) return *kind;
  std::string message = std::string(kLinkVariable).append("=").append(text).append(" is none of");
  for (const std::string_view name : kLinkNames) message.append(" ").append(name);
  return failure(EINVAL, message);
}

Transport transport_from_environment() {
  const bool in_fabric = std::getenv(kFabricVariable) != nullptr;
  const Expected<LinkKind> kind = link_kind_from_environment();
  return !in_fabric && kind && *kind == LinkKind::kIWARP ? Transport::kIWARP
                                                         : Transport::kInfiniBand;
}

}  // namespace verbena::host
