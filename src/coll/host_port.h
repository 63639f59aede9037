// HOST:PORT, as users write it. HOST is a name or an IP address, which may stand in brackets.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/types.h"

namespace verbena::coll {

struct HostPort {
  std::string host{};  // without brackets
  u16 port = 0;
};

// Returns nullopt for text of another form. No host and port 0 are valid: the caller knows what
// they mean.
[[nodiscard]] std::optional<HostPort> parse_host_port(std::string_view text);

}  // namespace verbena::coll
