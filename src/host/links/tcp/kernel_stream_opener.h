// KernelStreamOpener: a StreamOpener by TCP sockets of this process.
#pragma once

#include <sys/epoll.h>

#include "host/links/tcp/stream_opener.h"

namespace verbena::host {

class KernelStreamOpener final : public StreamOpener {
 public:
  // `interface_index`: of its addresses (SocketAddress).
  explicit KernelStreamOpener(u32 interface_index) : interface_index_(interface_index) {}

  [[nodiscard]] Descriptor listen(const TCPEndpoint& at, int backlog) override;
  void close_listener(Descriptor) override {}
  [[nodiscard]] std::optional<OpenedStream> accept(int listener) override;
  [[nodiscard]] Descriptor connect(const TCPEndpoint& to, const TCPEndpoint& from) override;
  [[nodiscard]] u32 connecting_events() const override { return EPOLLOUT; }
  [[nodiscard]] std::optional<OpenedStream> connected(Descriptor& connecting) override;

 private:
  const u32 interface_index_;
};

}  // namespace verbena::host
