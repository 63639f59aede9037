#include "host/encryption/key_connection.h"

#include <poll.h>

#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "host/network/socket_address.h"
#include "host/os/kernel_socket.h"

namespace verbena::host {

Expected<KeyConnection> KeyConnection::connect(const OpenSSL& ssl,
                                               const TLSCredentials& credentials,
                                               const AssociationEnds& ends, u16 port,
                                               u32 interface_index, const KeyQuestion& question,
                                               Time now) {
  Descriptor socket =
      open_kernel_socket(family_of(ends.sender), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK);
  const SocketAddress from(ends.sender, 0, interface_index);
  const SocketAddress to(ends.receiver, port, interface_index);
  if (!socket.is_open() || ::bind(socket.get(), from.data(), from.size()) != 0 ||
      (::connect(socket.get(), to.data(), to.size()) != 0 && errno != EINPROGRESS))
    return failure(errno, std::strerror(errno));
  KeyConnection made(ssl, credentials, std::move(socket), ends, {}, now);
  made.is_client_ = true;
  made.question_ = question;
  made.events_ = POLLOUT;
  ssl.ssl_set_connect_state(made.connection_.get());
  return made;
}

KeyConnection::KeyConnection(const OpenSSL& ssl, const TLSCredentials& credentials,
                             Descriptor socket, const AssociationEnds& ends, Issue issue, Time now)
    : ssl_(&ssl),
      credentials_(&credentials),
      socket_(std::move(socket)),
      connection_(ssl.ssl_new(credentials.context()), FreeSSL{&ssl}),
      ends_(ends),
      is_client_(false),
      issue_(std::move(issue)),
      deadline_(now + kPatience),
      events_(POLLIN) {
  CHECK(connection_ != nullptr && ssl.ssl_set_fd(connection_.get(), fd()) == 1);
  ssl.ssl_set_accept_state(connection_.get());
}

KeyConnection::State KeyConnection::on_ready() {
  State state = State::kDone;
  while (state == State::kDone) {
    const Step before = step_;
    state = step();
    if (state == State::kDone && step_ == before) return State::kDone;  // the last step
  }
  return state;
}

KeyConnection::State KeyConnection::step() {
  switch (step_) {
    case Step::kHandshake: return shake_hands();
    case Step::kAsk: return ask();
    case Step::kReadAnswer: return read_answer();
    case Step::kReadQuestion: return read_question();
    case Step::kAnswer: return answer();
  }
  CHECK_UNREACHABLE();
}

KeyConnection::State KeyConnection::shake_hands() {
  const int result = ssl_->ssl_do_handshake(connection_.get());
  if (result != 1) return on_result(result);
  const GID& peer = is_client_ ? ends_.receiver : ends_.sender;
  if (!credentials_->accepts(connection_.get(), peer))
    return fail("the credentials of " + peer.to_string() + " are not valid for its address");
  question_.encode(question_bytes_);
  step_ = is_client_ ? Step::kAsk : Step::kReadQuestion;
  return State::kDone;
}

KeyConnection::State KeyConnection::ask() {
  const State state = write_from(question_bytes_);
  if (state == State::kDone) step_ = Step::kReadAnswer;
  return state;
}

KeyConnection::State KeyConnection::read_answer() {
  const State state = read_into(answer_bytes_);
  if (state != State::kDone) return state;
  issued_ = KeyAnswer::decode(answer_bytes_);
  ssl_->cleanse(answer_bytes_.data(), answer_bytes_.size());
  if (!issued_) return fail(ends_.receiver.to_string() + " issues no key");
  (void)ssl_->ssl_shutdown(connection_.get());
  return State::kDone;
}

KeyConnection::State KeyConnection::read_question() {
  const State state = read_into(question_bytes_);
  if (state != State::kDone) return state;
  const std::optional<KeyQuestion> question = KeyQuestion::decode(question_bytes_);
  if (!question) return fail("the peer asks for what this host does not know");
  question_ = *question;
  const std::optional<IssuedAssociation> issued = issue_(question_, ends_);
  issued ? KeyAnswer::encode(*issued, answer_bytes_) : KeyAnswer::encode_refusal(answer_bytes_);
  step_ = Step::kAnswer;
  return State::kDone;
}

KeyConnection::State KeyConnection::answer() {
  const State state = write_from(answer_bytes_);
  if (state != State::kDone) return state;
  ssl_->cleanse(answer_bytes_.data(), answer_bytes_.size());
  (void)ssl_->ssl_shutdown(connection_.get());
  return State::kDone;
}

KeyConnection::State KeyConnection::read_into(std::span<u8> in) {
  while (transferred_ < in.size()) {
    const int result = ssl_->ssl_read(connection_.get(), in.data() + transferred_,
                                      static_cast<int>(in.size() - transferred_));
    if (result <= 0) return on_result(result);
    transferred_ += static_cast<std::size_t>(result);
  }
  transferred_ = 0;
  return State::kDone;
}

// TLS takes such a short message whole, or nothing of it.
KeyConnection::State KeyConnection::write_from(std::span<const u8> out) {
  const int result = ssl_->ssl_write(connection_.get(), out.data(), static_cast<int>(out.size()));
  return result > 0 ? State::kDone : on_result(result);
}

KeyConnection::State KeyConnection::on_result(int result) {
  const int system_error = errno;
  switch (ssl_->ssl_get_error(connection_.get(), result)) {
    case SSL_ERROR_WANT_READ: events_ = POLLIN; return State::kGoesOn;
    case SSL_ERROR_WANT_WRITE: events_ = POLLOUT; return State::kGoesOn;
    case SSL_ERROR_SYSCALL:
      ssl_->clear_errors();
      return fail(result == 0 || system_error == 0 ? "the peer closed the connection"
                                                   : std::strerror(system_error));
    default: return fail(ssl_->last_error_of(connection_.get()));
  }
}

KeyConnection::State KeyConnection::fail(std::string why) {
  error_ = std::move(why);
  return State::kFailed;
}

}  // namespace verbena::host
