// A non-blocking TCP socket of the kernel, on an address of a device.
#pragma once

#include "host/os/descriptor.h"
#include "transport/tcp_tuple.h"
#include "wire/ib/gid.h"

namespace verbena::host {

struct TCPEndpoint {
  GID address{};
  u16 port = 0;  // 0: any
};

// None, and errno says why, where the kernel refuses. `interface_index`: SocketAddress.
[[nodiscard]] Descriptor listen_at(const TCPEndpoint& at, u32 interface_index, int backlog);
// Begins to connect; writable when it has, or cannot. From `from`'s port if it is free, else from
// any.
[[nodiscard]] Descriptor connect_to(const TCPEndpoint& to, const TCPEndpoint& from,
                                    u32 interface_index);
// The next connection that waits; `peer` is who.
[[nodiscard]] Descriptor accept_from(int listener, TCPEndpoint& peer);
// Our own end.
[[nodiscard]] TCPEndpoint endpoint_of(int socket);
// Both ends. Not connected where the kernel cannot tell them.
[[nodiscard]] TCPTuple ends_of(int socket);
// 0, or why the connection has failed.
[[nodiscard]] int error_of(int socket);
// Bytes of a segment that it sends. RFC 5044: EMSS.
[[nodiscard]] u32 segment_bytes_of(int socket);

}  // namespace verbena::host
