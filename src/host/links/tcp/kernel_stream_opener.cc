#include "host/links/tcp/kernel_stream_opener.h"

#include <cerrno>
#include <utility>

namespace verbena::host {
namespace {

OpenedStream opened_on(Descriptor socket) {
  const int fd = socket.get();
  return {std::move(socket), ends_of(fd), segment_bytes_of(fd)};
}

}  // namespace

Descriptor KernelStreamOpener::listen(const TCPEndpoint& at, int backlog) {
  return listen_at(at, interface_index_, backlog);
}

std::optional<OpenedStream> KernelStreamOpener::accept(int listener) {
  TCPEndpoint peer;
  Descriptor socket = accept_from(listener, peer);
  if (!socket.is_open()) return std::nullopt;
  OpenedStream opened = opened_on(std::move(socket));
  opened.ends.remote = peer.address;  // also of a connection that the peer has reset already
  opened.ends.remote_port = peer.port;
  return opened;
}

Descriptor KernelStreamOpener::connect(const TCPEndpoint& to, const TCPEndpoint& from) {
  return connect_to(to, from, interface_index_);
}

std::optional<OpenedStream> KernelStreamOpener::connected(Descriptor& connecting) {
  const int error = error_of(connecting.get());
  if (error == 0) return opened_on(std::move(connecting));
  errno = error;
  return std::nullopt;
}

}  // namespace verbena::host
