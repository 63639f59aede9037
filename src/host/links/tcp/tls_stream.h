// TLSStream: TLS 1.3 on one TCP socket of an iWARP QP, by OpenSSL: MPA, DDP and RDMAP are inside
// it. The kernel encrypts (kTLS) where it can, and otherwise this process. Never blocks: its owner
// waits for what the socket is ready for. Not thread-safe.
#pragma once

#include <sys/uio.h>

#include <array>
#include <memory>
#include <span>
#include <string>

#include "host/encryption/tls_credentials.h"

namespace verbena::host {

enum class TLSRole : u8 { kClient, kServer };

class TLSStream {
 public:
  static constexpr std::size_t kRecordBytes = 16384;  // RFC 8446, 5.1: plaintext of one record

  // All outlive this. `peer`: the address that the peer's certificate must allow.
  TLSStream(const OpenSSL& ssl, const TLSCredentials& credentials, int socket, TLSRole role,
            const GID& peer);

  enum class Handshake : u8 { kGoesOn, kDone, kFailed };
  [[nodiscard]] Handshake shake_hands();
  [[nodiscard]] u32 awaits() const { return awaits_; }  // EPOLLIN or EPOLLOUT, of kGoesOn
  [[nodiscard]] const std::string& error() const { return error_; }  // of kFailed

  // As recv(2): bytes in clear; 0: the peer has ended its side; below 0: errno says why.
  [[nodiscard]] i64 receive(std::span<u8> into);
  // Returns true if there are decrypted bytes, for which no descriptor becomes readable.
  [[nodiscard]] bool has_pending() const;
  // As sendmsg(2). It may keep the bytes that it takes, up to a record, until flush().
  [[nodiscard]] i64 send(std::span<const iovec> from);
  // Returns whether nothing is kept any more, or the connection is lost.
  bool flush();
  [[nodiscard]] bool has_unsent() const { return unsent_ != 0; }
  void end();  // tells the peer that nothing more comes

 private:
  struct FreeSSL {
    const OpenSSL* ssl;
    void operator()(SSL* connection) const { ssl->ssl_free(connection); }
  };

  const OpenSSL& ssl_;
  const TLSCredentials& credentials_;
  GID peer_;
  std::unique_ptr<SSL, FreeSSL> connection_;
  u32 awaits_ = 0;
  std::size_t unsent_ = 0;
  bool is_broken_ = false;
  std::string error_{};
  std::unique_ptr<std::array<u8, kRecordBytes>> record_;
};

// Whether these first bytes of a connection are a TLS record (handshake or alert) instead of MPA.
[[nodiscard]] bool looks_like_tls(std::span<const u8> bytes);
// Whether the kernel encrypts TLS itself (CONFIG_TLS).
[[nodiscard]] bool kernel_has_tls();

}  // namespace verbena::host
