#include "host/links/tcp/tls_stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "host/os/kernel_socket.h"
#include "memory/touch.h"

#ifndef TCP_ULP
#define TCP_ULP 31
#endif

namespace verbena::host {
namespace {

// OpenSSL writes to the socket without MSG_NOSIGNAL, and must not end the program with SIGPIPE. A
// signal that this thread had blocked itself stays as it is.
class NoSIGPIPE {
 public:
  NoSIGPIPE() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    (void)::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoSIGPIPE() {
    if (sigismember(&before_, SIGPIPE) == 1) return;
    const int error = errno;
    if (error == EPIPE) {
      const timespec at_once{};
      (void)::sigtimedwait(&pipe_, nullptr, &at_once);
    }
    (void)::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  NoSIGPIPE(const NoSIGPIPE&) = delete;
  NoSIGPIPE& operator=(const NoSIGPIPE&) = delete;

 private:
  sigset_t pipe_{}, before_{};
};

// Copies the next bytes of `from`, behind `at`, to `out`. Returns how many.
std::size_t copy_of(std::span<const iovec> from, std::size_t at, std::span<u8> out) {
  std::size_t copied = 0;
  for (const iovec& piece : from) {
    if (at >= piece.iov_len) {
      at -= piece.iov_len;
      continue;
    }
    const std::size_t size = std::min(piece.iov_len - at, out.size() - copied);
    std::memcpy(out.data() + copied, static_cast<const u8*>(piece.iov_base) + at, size);
    copied += size;
    at = 0;
    if (copied == out.size()) break;
  }
  return copied;
}

std::size_t bytes_of(std::span<const iovec> from) {
  std::size_t sum = 0;
  for (const iovec& piece : from) sum += piece.iov_len;
  return sum;
}

}  // namespace

TLSStream::TLSStream(const OpenSSL& ssl, const TLSCredentials& credentials, int socket,
                     TLSRole role, const GID& peer)
    : ssl_(ssl),
      credentials_(credentials),
      peer_(peer),
      connection_(ssl.ssl_new(credentials.context()), FreeSSL{&ssl}),
      record_(std::make_unique_for_overwrite<std::array<u8, kRecordBytes>>()) {
  CHECK(connection_ != nullptr && ssl.ssl_set_fd(connection_.get(), socket) == 1);
  (void)ssl.ssl_set_options(connection_.get(), SSL_OP_ENABLE_KTLS);
  role == TLSRole::kClient ? ssl.ssl_set_connect_state(connection_.get())
                           : ssl.ssl_set_accept_state(connection_.get());
}

TLSStream::Handshake TLSStream::shake_hands() {
  const NoSIGPIPE quiet;
  ssl_.clear_errors();
  errno = 0;
  const int result = ssl_.ssl_do_handshake(connection_.get());
  if (result == 1) {
    if (credentials_.accepts(connection_.get(), peer_)) return Handshake::kDone;
    error_ = "its credentials are not valid for its address";
    return Handshake::kFailed;
  }
  const int system_error = errno;
  switch (ssl_.ssl_get_error(connection_.get(), result)) {
    case SSL_ERROR_WANT_READ: awaits_ = EPOLLIN; return Handshake::kGoesOn;
    case SSL_ERROR_WANT_WRITE: awaits_ = EPOLLOUT; return Handshake::kGoesOn;
    case SSL_ERROR_SYSCALL:
      error_ = system_error == 0 ? "it closed the connection" : std::strerror(system_error);
      break;
    default: error_ = ssl_.last_error_of(connection_.get());
  }
  return Handshake::kFailed;
}

// An end without TLS's own end could be an attacker's: it is an error.
i64 TLSStream::receive(std::span<u8> into) {
  const NoSIGPIPE quiet;
  std::size_t got = 0;
  while (got < into.size()) {
    ssl_.clear_errors();
    const int size = static_cast<int>(std::min(into.size() - got, kRecordBytes));
    const int result = ssl_.ssl_read(connection_.get(), into.data() + got, size);
    if (result > 0) {
      got += static_cast<std::size_t>(result);
      continue;
    }
    if (got != 0) break;
    const int why = ssl_.ssl_get_error(connection_.get(), result);
    ssl_.clear_errors();
    if (why == SSL_ERROR_ZERO_RETURN) return 0;
    errno = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? EAGAIN : ECONNRESET;
    return -1;
  }
  return static_cast<i64>(got);
}

bool TLSStream::has_pending() const { return ssl_.ssl_pending(connection_.get()) > 0; }

// A record that the socket does not take is kept: OpenSSL wants to be called with it again.
i64 TLSStream::send(std::span<const iovec> from) {
  const std::size_t all = bytes_of(from);
  std::size_t taken = 0;
  while (taken < all && flush() && !is_broken_) {
    std::size_t size = 0;
    if (!touch([&] { size = copy_of(from, taken, *record_); })) {
      errno = EFAULT;
      return -1;
    }
    taken += unsent_ = size;
  }
  (void)flush();
  if (is_broken_) errno = EPIPE;
  if (taken == 0 && !is_broken_) errno = EAGAIN;
  return is_broken_ || taken == 0 ? -1 : static_cast<i64>(taken);
}

bool TLSStream::flush() {
  if (unsent_ == 0 || is_broken_) return true;
  const NoSIGPIPE quiet;
  ssl_.clear_errors();
  const int result = ssl_.ssl_write(connection_.get(), record_->data(), static_cast<int>(unsent_));
  if (result > 0) {
    unsent_ = 0;
    return true;
  }
  const int why = ssl_.ssl_get_error(connection_.get(), result);
  if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) return false;
  ssl_.clear_errors();
  is_broken_ = true;
  return true;
}

void TLSStream::end() {
  const NoSIGPIPE quiet;
  if (!is_broken_) (void)ssl_.ssl_shutdown(connection_.get());
  ssl_.clear_errors();
}

bool looks_like_tls(std::span<const u8> bytes) {
  constexpr u8 kAlert = 21, kHandshake = 22, kMajorVersion = 3;  // RFC 8446, 5.1
  return bytes.size() >= 2 && (bytes[0] == kAlert || bytes[0] == kHandshake) &&
         bytes[1] == kMajorVersion;
}

// On a socket that is not connected: ENOENT without TLS, ENOTCONN with it.
bool kernel_has_tls() {
  const Descriptor socket = open_kernel_socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC);
  constexpr char kName[] = "tls";
  return ::setsockopt(socket.get(), IPPROTO_TCP, TCP_ULP, kName, sizeof(kName)) == 0 ||
         errno == ENOTCONN;
}

}  // namespace verbena::host
