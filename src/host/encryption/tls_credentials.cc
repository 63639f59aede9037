#include "host/encryption/tls_credentials.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace verbena::host {
namespace {

constexpr unsigned char kIdentityBytes[] = {'v', 'e', 'r', 'b', 'e', 'n', 'a'};
constexpr unsigned kIdentitySize = sizeof(kIdentityBytes);
constexpr std::size_t kMinSecretBytes = 16, kMaxSecretBytes = 65536;
constexpr const char* kSuite = "TLS_AES_128_GCM_SHA256";
constexpr std::array<u8, 2> kSuiteCode = {0x13, 0x01};
// SSL_CTX_set_ex_data()'s index 0 is the application's "app_data": the context is ours alone.
constexpr int kOwnerIndex = 0;

Expected<std::string> file_name_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    return failure(errno,
                   std::string(kEncryptionVariable) + ": " + path + ": " + std::strerror(errno));
  return std::to_string(status.st_dev) + "-" + std::to_string(status.st_ino);
}

bool names_ip_addresses(const OpenSSL& ssl, const GENERAL_NAMES* names) {
  const auto* const stack = reinterpret_cast<const OPENSSL_STACK*>(names);
  for (int i = 0; i < ssl.stack_size(stack); ++i)
    if (static_cast<const GENERAL_NAME*>(ssl.stack_value(stack, i))->type == GEN_IPADD) return true;
  return false;
}

}  // namespace

Expected<std::unique_ptr<TLSCredentials>> TLSCredentials::load(const OpenSSL& ssl,
                                                               const EncryptionSettings& settings) {
  std::unique_ptr<TLSCredentials> made(new TLSCredentials(ssl));
  made->uses_psk_ = settings.uses_psk();
  made->context_ = ssl.ctx_new(ssl.tls_method());
  if (made->context_ == nullptr) return failure(ENOMEM, "cannot make a TLS context");
  ssl.ctx_control(made->context_, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_3_VERSION, nullptr);
  ssl.ctx_control(made->context_, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, nullptr);
  (void)ssl.ctx_set_options(made->context_, SSL_OP_NO_TICKET);
  (void)ssl.ctx_set_session_context(made->context_, kIdentityBytes, kIdentitySize);
  ssl.ctx_set_data(made->context_, kOwnerIndex, made.get());
  const std::string& main = settings.uses_psk() ? settings.psk_file : settings.certificate_file;
  Expected<std::string> name = file_name_of(main);
  if (!name) return tl::unexpected(name.error());
  made->name_ = *name;
  const Expected<void> loaded =
      settings.uses_psk() ? made->load_key(main) : made->load_certificates(settings);
  if (!loaded) return tl::unexpected(loaded.error());
  return made;
}

TLSCredentials::~TLSCredentials() {
  ssl_.ctx_free(context_);
  ssl_.cleanse(secret_.data(), secret_.size());
}

// The secret is a hash of the file, so that a text of any length and a binary key will do.
Expected<void> TLSCredentials::load_key(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string content(kMaxSecretBytes + 1, '\0');
  file.read(content.data(), static_cast<std::streamsize>(content.size()));
  if (!file.is_open() || file.bad())
    return failure(errno == 0 ? EIO : errno,
                   std::string(kEncryptionVariable) + ": cannot read the pre-shared key " + path);
  content.resize(static_cast<std::size_t>(file.gcount()));
  if (content.size() > kMaxSecretBytes)
    return failure(EINVAL, path + ": a pre-shared key has " + std::to_string(kMaxSecretBytes) +
                               " bytes at most");
  while (!content.empty() && (content.back() == '\n' || content.back() == '\r')) content.pop_back();
  if (content.size() < kMinSecretBytes)
    return failure(EINVAL, path + ": a pre-shared key has " + std::to_string(kMinSecretBytes) +
                               " bytes at least; make one: openssl rand -hex 32 > FILE");
  unsigned size = 0;
  if (ssl_.digest(content.data(), content.size(), secret_.data(), &size, ssl_.sha256(), nullptr) !=
      1)
    return failure(EIO, "SHA-256: " + ssl_.last_error());
  ssl_.cleanse(content.data(), content.size());
  if (ssl_.ctx_set_ciphersuites(context_, kSuite) != 1)
    return failure(EIO, std::string(kSuite) + ": " + ssl_.last_error());
  // A server that does not know the key could offer a certificate instead: none is trusted.
  ssl_.ctx_set_verify(context_, SSL_VERIFY_PEER, nullptr);
  ssl_.ctx_on_use_psk(context_, &on_use_psk);
  ssl_.ctx_on_find_psk(context_, &on_find_psk);
  return {};
}

Expected<void> TLSCredentials::load_certificates(const EncryptionSettings& settings) {
  const auto refused = [&](const std::string& path) {
    return failure(EINVAL,
                   std::string(kEncryptionVariable) + ": " + path + ": " + ssl_.last_error());
  };
  if (ssl_.ctx_use_certificate(context_, settings.certificate_file.c_str()) != 1)
    return refused(settings.certificate_file);
  if (ssl_.ctx_use_key(context_, settings.key_file.c_str(), SSL_FILETYPE_PEM) != 1 ||
      ssl_.ctx_check_key(context_) != 1)
    return refused(settings.key_file);
  if (ssl_.ctx_load_authorities(context_, settings.authority_file.c_str(), nullptr) != 1)
    return refused(settings.authority_file);
  ssl_.ctx_set_verify(context_, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return {};
}

const TLSCredentials& TLSCredentials::of(SSL* connection) {
  // The table is loaded: without it there is no connection.
  const OpenSSL& ssl = **OpenSSL::load();
  return *static_cast<const TLSCredentials*>(
      ssl.ctx_get_data(ssl.ssl_get_ctx(connection), kOwnerIndex));
}

SSL_SESSION* TLSCredentials::session_of_key(SSL* connection) const {
  SSL_SESSION* const session = ssl_.session_new();
  if (session == nullptr) return nullptr;
  const SSL_CIPHER* const cipher = ssl_.cipher_find(connection, kSuiteCode.data());
  if (cipher != nullptr && ssl_.session_set_key(session, secret_.data(), secret_.size()) == 1 &&
      ssl_.session_set_context(session, kIdentityBytes, kIdentitySize) == 1 &&
      ssl_.session_set_cipher(session, cipher) == 1 &&
      ssl_.session_set_version(session, TLS1_3_VERSION) == 1)
    return session;
  ssl_.session_free(session);
  return nullptr;
}

int TLSCredentials::on_use_psk(SSL* connection, const EVP_MD*, const unsigned char** id,
                               std::size_t* id_size, SSL_SESSION** session) {
  *session = of(connection).session_of_key(connection);
  *id = kIdentityBytes;
  *id_size = kIdentitySize;
  return *session != nullptr ? 1 : 0;
}

int TLSCredentials::on_find_psk(SSL* connection, const unsigned char* id, std::size_t id_size,
                                SSL_SESSION** session) {
  const bool is_ours = std::ranges::equal(std::span(id, id_size), std::span(kIdentityBytes));
  *session = is_ours ? of(connection).session_of_key(connection) : nullptr;
  return 1;  // without a session the handshake fails: there is no certificate
}

bool TLSCredentials::accepts(SSL* connection, const GID& peer) const {
  if (uses_psk_) return ssl_.ssl_used_psk(connection) == 1;
  X509* const certificate = ssl_.ssl_peer_certificate(connection);
  if (certificate == nullptr) return false;
  auto* const names = static_cast<GENERAL_NAMES*>(
      ssl_.x509_extension(certificate, NID_subject_alt_name, nullptr, nullptr));
  bool accepted = true;
  if (names != nullptr && names_ip_addresses(ssl_, names)) {
    const std::span<const u8> address =
        peer.is_ipv4() ? std::span<const u8>(peer.bytes).last(4) : std::span<const u8>(peer.bytes);
    accepted = ssl_.x509_check_ip(certificate, address.data(), address.size(), 0) == 1;
  }
  ssl_.general_names_free(names);
  ssl_.x509_free(certificate);
  return accepted;
}

}  // namespace verbena::host
