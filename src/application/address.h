// Address: an IP address and a port of TCP or of the IP CM, and its form in text.
#pragma once

#include <optional>
#include <string_view>

#include "wire/ib/gid.h"

namespace verbena::application {

struct Address {
  GID ip;
  u16 port = 0;
};

// Reads "10.0.0.1", "10.0.0.1:4420", "fd00::1", "[fd00::1]" and "[fd00::1]:4420". An address
// without a port gets `port`. Returns nullopt for others: names of hosts, and port 0, among them.
[[nodiscard]] std::optional<Address> parse_address(std::string_view text, u16 port);

}  // namespace verbena::application
