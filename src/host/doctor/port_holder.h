// Finds the processes that hold a UDP port: from /proc/net/udp and udp6, and from /proc/PID/fd as
// far as this user may read it.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "wire/ib/gid.h"

namespace verbena::host {

struct UDPSocket {
  GID address{};  // zeros: IPv4's or IPv6's any
  u16 port = 0;
  uid_t user = 0;
  u64 inode = 0;
  friend bool operator==(const UDPSocket&, const UDPSocket&) = default;
};

// The sockets on `port` in the text of /proc/net/udp or udp6. Lines that are none are left out.
[[nodiscard]] std::vector<UDPSocket> udp_sockets_in(std::string_view text, u16 port);

struct PortHolder {
  UDPSocket socket;
  std::vector<pid_t> processes;  // that have it open; none: the kernel, or not for us to see
};
// Those that keep others from binding the port on `address`.
[[nodiscard]] std::vector<PortHolder> holders_of_udp_port(const GID& address, u16 port);

}  // namespace verbena::host
