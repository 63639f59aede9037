// StreamOpener: opens the TCP connections of an iWARP adapter: by sockets of this process, or by
// those of `verbena nic`. Not thread-safe; the adapter's lock guards it.
#pragma once

#include <optional>

#include "base/time.h"
#include "host/links/tcp/tcp_socket.h"

namespace verbena::host {

// A connection. `socket` has its bytes: a TCP socket, or a Unix stream socket to the NIC.
struct OpenedStream {
  Descriptor socket;
  TCPTuple ends{};        // of the TCP connection; not connected: unknown
  u32 segment_bytes = 0;  // of its TCP segments. RFC 5044: EMSS
};

class StreamOpener {
 public:
  virtual ~StreamOpener() = default;

  // Begins to listen. Returns a descriptor that is readable when accept() has a connection. If it
  // is not open, errno says why.
  [[nodiscard]] virtual Descriptor listen(const TCPEndpoint& at, int backlog) = 0;
  // Closes such a descriptor. The port is free then.
  virtual void close_listener(Descriptor listener) = 0;
  // Returns the next connection. If there is none, errno says why: ENOTCONN when none will ever
  // come.
  [[nodiscard]] virtual std::optional<OpenedStream> accept(int listener) = 0;
  // Begins to connect from `from`'s port if it is free, else from any. Returns a descriptor that
  // has one of connecting_events() when connected() has the result. If it is not open, errno says
  // why.
  [[nodiscard]] virtual Descriptor connect(const TCPEndpoint& to, const TCPEndpoint& from) = 0;
  [[nodiscard]] virtual u32 connecting_events() const = 0;  // of epoll
  // Returns the connection that began as `connecting`. If there is none, errno says why: EAGAIN
  // when it has not been made yet.
  [[nodiscard]] virtual std::optional<OpenedStream> connected(Descriptor& connecting) = 0;

  [[nodiscard]] virtual Time next_timer() const { return Time::never(); }
  // Returns true if all that listened has ended and can listen again.
  [[nodiscard]] virtual bool run_due_timers(Time) { return false; }
  virtual void abandon() {}  // in a child after fork()
};

}  // namespace verbena::host
