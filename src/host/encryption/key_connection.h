// KeyConnection: one TLS connection over TCP on which the key of an association is agreed, as the
// side that asks (client) or answers (server). Never blocks: its owner waits for events() on fd()
// and calls on_ready(). Ends by itself after kPatience.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "base/time.h"
#include "host/encryption/key_messages.h"
#include "host/encryption/tls_credentials.h"
#include "host/os/descriptor.h"
#include "host/os/error.h"

namespace verbena::host {

class KeyConnection {
 public:
  static constexpr Duration kPatience = sec(3);

  // Answers questions about the association from `ends.sender`, the peer, to this host.
  using Issue =
      std::function<std::optional<IssuedAssociation>(const KeyQuestion&, const AssociationEnds&)>;

  // A client that connects from `ends.sender` to `ends.receiver`.
  [[nodiscard]] static Expected<KeyConnection> connect(const OpenSSL& ssl,
                                                       const TLSCredentials& credentials,
                                                       const AssociationEnds& ends, u16 port,
                                                       u32 interface_index,
                                                       const KeyQuestion& question, Time now);
  // A server on a connection that was accepted.
  KeyConnection(const OpenSSL& ssl, const TLSCredentials& credentials, Descriptor socket,
                const AssociationEnds& ends, Issue issue, Time now);
  KeyConnection(KeyConnection&& other) noexcept = default;
  KeyConnection& operator=(KeyConnection&& other) noexcept = default;

  [[nodiscard]] int fd() const { return socket_.get(); }
  [[nodiscard]] short events() const { return events_; }  // of poll()
  [[nodiscard]] Time deadline() const { return deadline_; }
  [[nodiscard]] const AssociationEnds& ends() const { return ends_; }
  [[nodiscard]] bool is_client() const { return is_client_; }
  [[nodiscard]] u16 slot() const { return question_.slot; }

  enum class State : u8 { kGoesOn, kDone, kFailed };
  [[nodiscard]] State on_ready();
  // The result of a client that is done.
  [[nodiscard]] const std::optional<IssuedAssociation>& issued() const { return issued_; }
  // The reason why a connection has failed.
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  struct FreeSSL {
    const OpenSSL* ssl;
    void operator()(SSL* connection) const { ssl->ssl_free(connection); }
  };
  enum class Step : u8 { kHandshake, kAsk, kReadAnswer, kReadQuestion, kAnswer };

  State step();
  State shake_hands();
  State ask();
  State read_answer();
  State read_question();
  State answer();
  State fail(std::string why);
  State on_result(int result);
  // Reads until `in` is full. kDone: it is.
  State read_into(std::span<u8> in);
  State write_from(std::span<const u8> out);

  const OpenSSL* ssl_;
  const TLSCredentials* credentials_;
  Descriptor socket_;
  std::unique_ptr<SSL, FreeSSL> connection_;
  AssociationEnds ends_;
  bool is_client_;
  Issue issue_{};
  KeyQuestion question_{};
  Time deadline_;
  Step step_ = Step::kHandshake;
  short events_ = 0;
  std::size_t transferred_ = 0;  // of the message that the step is about
  std::array<u8, KeyQuestion::kSize> question_bytes_{};
  std::array<u8, KeyAnswer::kSize> answer_bytes_{};
  std::optional<IssuedAssociation> issued_{};
  std::string error_{};
};

}  // namespace verbena::host
