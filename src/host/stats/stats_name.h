// The abstract Unix name at which an adapter answers questions about its counters: of its user and
// slot (qpn_slot.h), so that those who look on find it in /proc/net/unix and know whose it is.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/types.h"

namespace verbena::host {

struct StatsName {
  uid_t user = 0;
  u32 slot = 0;

  [[nodiscard]] std::string to_string() const;  // "verbena-stats-1000-17"
  // Returns nullopt if it is another name, or one that to_string() would write differently.
  [[nodiscard]] static std::optional<StatsName> parse(std::string_view text);
  friend bool operator==(const StatsName&, const StatsName&) = default;
};

// As a socket call wants it.
struct AbstractAddress {
  sockaddr_un address{};
  socklen_t size = 0;

  explicit AbstractAddress(std::string_view name);
  const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&address); }
};

// The sender that the kernel names beside a datagram (SO_PASSCRED); nullopt: none.
[[nodiscard]] std::optional<ucred> sender_of(msghdr& message);

}  // namespace verbena::host
