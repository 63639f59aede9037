// StreamSocket: the TCP socket of an iWARP QP, in clear or with TLS on it. The calls are those of
// the kernel, without blocking.
#pragma once

#include <sys/socket.h>

#include <memory>
#include <utility>

#include "host/links/tcp/tls_stream.h"
#include "host/os/descriptor.h"
#include "host/os/message_calls.h"

namespace verbena::host {

class StreamSocket {
 public:
  StreamSocket() = default;
  StreamSocket(Descriptor socket) : socket_(std::move(socket)) {}  // NOLINT: in clear

  [[nodiscard]] int get() const { return socket_.get(); }
  [[nodiscard]] bool is_open() const { return socket_.is_open(); }
  void reset() {
    tls_.reset();
    socket_.reset();
  }

  // From now on all goes through `tls`, which is on this socket.
  void secure(std::unique_ptr<TLSStream> tls) { tls_ = std::move(tls); }
  [[nodiscard]] TLSStream* tls() { return tls_.get(); }  // nullptr: in clear
  [[nodiscard]] bool is_encrypted() const { return tls_ != nullptr; }

  [[nodiscard]] i64 receive(std::span<iovec> into) {
    if (tls_ != nullptr) return receive_decrypted(into.back());
    return receive_pieces(socket_.get(), into);
  }
  [[nodiscard]] i64 send(std::span<iovec> from) {
    if (tls_ != nullptr) return tls_->send(from);
    return send_pieces(socket_.get(), from);
  }
  // TLSStream's.
  [[nodiscard]] bool has_pending() const { return tls_ != nullptr && tls_->has_pending(); }
  [[nodiscard]] bool has_unsent() const { return tls_ != nullptr && tls_->has_unsent(); }
  bool flush() { return tls_ == nullptr || tls_->flush(); }

  void finish() {  // ends our side
    tell_end();
    (void)::shutdown(socket_.get(), SHUT_WR);
  }
  void tell_end() {  // before the socket is closed
    if (tls_ != nullptr) tls_->end();
  }

 private:
  // Into one piece: TCPStreams passes no other.
  [[nodiscard]] i64 receive_decrypted(const iovec& into) {
    return tls_->receive({static_cast<u8*>(into.iov_base), into.iov_len});
  }

  Descriptor socket_;
  std::unique_ptr<TLSStream> tls_;  // destroyed first
};

}  // namespace verbena::host
