#include "host/encryption/openssl.h"

#include <dlfcn.h>

#include <array>
#include <cerrno>

namespace verbena::host {
namespace {

constexpr const char* kCryptoLibrary = "libcrypto.so.3";
constexpr const char* kTLSLibrary = "libssl.so.3";

template <typename Function>
bool find(void* library, const char* name, Function& out) {
  out = reinterpret_cast<Function>(::dlsym(library, name));
  return out != nullptr;
}

// The application may end by exit() while a device is open: then OpenSSL must not clean up before.
void keep_until_the_process_ends(void* crypto) {
  decltype(&::OPENSSL_init_crypto) init = nullptr;
  if (find(crypto, "OPENSSL_init_crypto", init)) (void)init(OPENSSL_INIT_NO_ATEXIT, nullptr);
}

bool find_all(void* crypto, void* ssl, OpenSSL& table) {
  return find(crypto, "EVP_CIPHER_CTX_new", table.cipher_new) &&
         find(crypto, "EVP_CIPHER_CTX_free", table.cipher_free) &&
         find(crypto, "EVP_EncryptInit_ex", table.encrypt_init) &&
         find(crypto, "EVP_EncryptUpdate", table.encrypt_update) &&
         find(crypto, "EVP_EncryptFinal_ex", table.encrypt_final) &&
         find(crypto, "EVP_DecryptInit_ex", table.decrypt_init) &&
         find(crypto, "EVP_DecryptUpdate", table.decrypt_update) &&
         find(crypto, "EVP_DecryptFinal_ex", table.decrypt_final) &&
         find(crypto, "EVP_CIPHER_CTX_ctrl", table.cipher_control) &&
         find(crypto, "EVP_aes_128_gcm", table.aes_128_gcm) &&
         find(crypto, "EVP_aes_256_gcm", table.aes_256_gcm) &&
         find(crypto, "EVP_MAC_fetch", table.mac_fetch) &&
         find(crypto, "EVP_MAC_free", table.mac_free) &&
         find(crypto, "EVP_MAC_CTX_new", table.mac_new) &&
         find(crypto, "EVP_MAC_CTX_free", table.mac_ctx_free) &&
         find(crypto, "EVP_MAC_init", table.mac_init) &&
         find(crypto, "EVP_MAC_update", table.mac_update) &&
         find(crypto, "EVP_MAC_final", table.mac_final) &&
         find(crypto, "OSSL_PARAM_construct_utf8_string", table.param_text) &&
         find(crypto, "OSSL_PARAM_construct_end", table.param_end) &&
         find(crypto, "EVP_Digest", table.digest) && find(crypto, "EVP_sha256", table.sha256) &&
         find(crypto, "OPENSSL_cleanse", table.cleanse) &&
         find(crypto, "ERR_get_error", table.get_error) &&
         find(crypto, "ERR_error_string_n", table.error_text) &&
         find(crypto, "ERR_clear_error", table.clear_errors) &&
         find(crypto, "X509_free", table.x509_free) &&
         find(crypto, "X509_verify_cert_error_string", table.x509_verify_text) &&
         find(crypto, "X509_check_ip", table.x509_check_ip) &&
         find(crypto, "X509_get_ext_d2i", table.x509_extension) &&
         find(crypto, "GENERAL_NAMES_free", table.general_names_free) &&
         find(crypto, "OPENSSL_sk_num", table.stack_size) &&
         find(crypto, "OPENSSL_sk_value", table.stack_value) &&
         find(ssl, "TLS_method", table.tls_method) && find(ssl, "SSL_CTX_new", table.ctx_new) &&
         find(ssl, "SSL_CTX_free", table.ctx_free) &&
         find(ssl, "SSL_CTX_ctrl", table.ctx_control) &&
         find(ssl, "SSL_CTX_set_options", table.ctx_set_options) &&
         find(ssl, "SSL_CTX_set_verify", table.ctx_set_verify) &&
         find(ssl, "SSL_CTX_set_session_id_context", table.ctx_set_session_context) &&
         find(ssl, "SSL_CTX_set_ciphersuites", table.ctx_set_ciphersuites) &&
         find(ssl, "SSL_CTX_use_certificate_chain_file", table.ctx_use_certificate) &&
         find(ssl, "SSL_CTX_use_PrivateKey_file", table.ctx_use_key) &&
         find(ssl, "SSL_CTX_check_private_key", table.ctx_check_key) &&
         find(ssl, "SSL_CTX_load_verify_locations", table.ctx_load_authorities) &&
         find(ssl, "SSL_CTX_set_psk_use_session_callback", table.ctx_on_use_psk) &&
         find(ssl, "SSL_CTX_set_psk_find_session_callback", table.ctx_on_find_psk) &&
         find(ssl, "SSL_new", table.ssl_new) && find(ssl, "SSL_free", table.ssl_free) &&
         find(ssl, "SSL_set_fd", table.ssl_set_fd) &&
         find(ssl, "SSL_set_options", table.ssl_set_options) &&
         find(ssl, "SSL_set_connect_state", table.ssl_set_connect_state) &&
         find(ssl, "SSL_set_accept_state", table.ssl_set_accept_state) &&
         find(ssl, "SSL_do_handshake", table.ssl_do_handshake) &&
         find(ssl, "SSL_read", table.ssl_read) && find(ssl, "SSL_write", table.ssl_write) &&
         find(ssl, "SSL_pending", table.ssl_pending) && find(ssl, "SSL_ctrl", table.ssl_control) &&
         find(ssl, "SSL_get_error", table.ssl_get_error) &&
         find(ssl, "SSL_shutdown", table.ssl_shutdown) &&
         find(ssl, "SSL_session_reused", table.ssl_used_psk) &&
         find(ssl, "SSL_CIPHER_find", table.cipher_find) &&
         find(ssl, "SSL_get1_peer_certificate", table.ssl_peer_certificate) &&
         find(ssl, "SSL_get_verify_result", table.ssl_verify_result) &&
         find(ssl, "SSL_SESSION_new", table.session_new) &&
         find(ssl, "SSL_SESSION_free", table.session_free) &&
         find(ssl, "SSL_SESSION_set1_master_key", table.session_set_key) &&
         find(ssl, "SSL_SESSION_set1_id_context", table.session_set_context) &&
         find(ssl, "SSL_SESSION_set_cipher", table.session_set_cipher) &&
         find(ssl, "SSL_SESSION_set_protocol_version", table.session_set_version) &&
         find(ssl, "SSL_get_ex_data", table.ssl_get_data) &&
         find(ssl, "SSL_CTX_set_ex_data", table.ctx_set_data) &&
         find(ssl, "SSL_CTX_get_ex_data", table.ctx_get_data) &&
         find(ssl, "SSL_get_SSL_CTX", table.ssl_get_ctx);
}

Expected<OpenSSL> load_table() {
  void* const crypto = ::dlopen(kCryptoLibrary, RTLD_NOW | RTLD_LOCAL);
  void* const ssl = ::dlopen(kTLSLibrary, RTLD_NOW | RTLD_LOCAL);
  if (crypto == nullptr || ssl == nullptr)
    return failure(ENOENT, std::string("encryption needs OpenSSL 3: cannot load ") +
                               (crypto == nullptr ? kCryptoLibrary : kTLSLibrary) +
                               "; install libssl3");
  keep_until_the_process_ends(crypto);
  OpenSSL table;
  if (!find_all(crypto, ssl, table))
    return failure(ENOENT, "encryption needs OpenSSL 3.0 or newer: a function is missing");
  return table;
}

}  // namespace

Expected<const OpenSSL*> OpenSSL::load() {
  static const Expected<OpenSSL> table = load_table();
  if (!table) return tl::unexpected(table.error());
  return &*table;
}

std::string OpenSSL::last_error() const {
  std::array<char, 256> text{};
  const unsigned long code = get_error();
  clear_errors();
  if (code == 0) return "the peer closed the connection";
  error_text(code, text.data(), text.size());
  return text.data();
}

std::string OpenSSL::last_error_of(const SSL* connection) const {
  const long verified = ssl_verify_result(connection);
  return last_error() +
         (verified == X509_V_OK ? "" : std::string(": ") + x509_verify_text(verified));
}

}  // namespace verbena::host
