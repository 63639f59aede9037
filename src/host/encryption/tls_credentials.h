// TLSCredentials: the proof of identity of this host in the handshake of keys, and its demands on
// peers: TLS 1.3 only, by a pre-shared key or by certificates of one authority on both sides. A
// certificate that names IP addresses is valid only for those.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "host/encryption/encryption_settings.h"
#include "host/encryption/openssl.h"
#include "wire/ib/gid.h"

namespace verbena::host {

class TLSCredentials {
 public:
  [[nodiscard]] static Expected<std::unique_ptr<TLSCredentials>> load(
      const OpenSSL& ssl, const EncryptionSettings& settings);
  ~TLSCredentials();
  TLSCredentials(const TLSCredentials&) = delete;
  TLSCredentials& operator=(const TLSCredentials&) = delete;

  [[nodiscard]] SSL_CTX* context() const { return context_; }
  // After a handshake: whether the peer's certificate, if certificates are asked for, is valid for
  // the address at which the peer was reached.
  [[nodiscard]] bool accepts(SSL* connection, const GID& peer) const;
  // Names the files' identity, for what processes with the same credentials share.
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  explicit TLSCredentials(const OpenSSL& ssl) : ssl_(ssl) {}
  [[nodiscard]] Expected<void> load_key(const std::string& path);
  [[nodiscard]] Expected<void> load_certificates(const EncryptionSettings& settings);
  [[nodiscard]] SSL_SESSION* session_of_key(SSL* connection) const;
  static int on_use_psk(SSL* connection, const EVP_MD* md, const unsigned char** id,
                        std::size_t* id_size, SSL_SESSION** session);
  static int on_find_psk(SSL* connection, const unsigned char* id, std::size_t id_size,
                         SSL_SESSION** session);
  static const TLSCredentials& of(SSL* connection);

  const OpenSSL& ssl_;
  SSL_CTX* context_ = nullptr;
  bool uses_psk_ = false;
  std::array<u8, 32> secret_{};
  std::string name_;
};

}  // namespace verbena::host
