// TCPTuple: the addresses and ports of a TCP connection, as one end sees them. In one network
// namespace at most one connection has such a pair of ends at a time.
#pragma once

#include "wire/ib/gid.h"

namespace verbena {

struct TCPTuple {
  GID local{}, remote{};                // IPv4 addresses are mapped
  u16 local_port = 0, remote_port = 0;  // 0: no connection

  [[nodiscard]] bool is_connected() const { return local_port != 0; }
  // Returns the same connection, as the other end sees it.
  [[nodiscard]] TCPTuple reversed() const { return {remote, local, remote_port, local_port}; }
  friend bool operator==(const TCPTuple&, const TCPTuple&) = default;
};

}  // namespace verbena
