// OpenSSL: the functions of libcrypto and libssl (3.0 or newer) that encryption needs. They are
// loaded when encryption is asked for, so that a program without it links and loads no OpenSSL.
// The names are OpenSSL's, without the prefix where it is the same for all.
#pragma once

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <string>

#include "host/os/error.h"

namespace verbena::host {

struct OpenSSL {
  // Returns the one of this process, loaded at the first call. Thread-safe.
  [[nodiscard]] static Expected<const OpenSSL*> load();

  // Returns the text of the newest error of this thread, and clears them all.
  [[nodiscard]] std::string last_error() const;
  // The same, with the reason for which the peer's certificate was refused, if it was.
  [[nodiscard]] std::string last_error_of(const SSL* connection) const;

  decltype(&::EVP_CIPHER_CTX_new) cipher_new{};
  decltype(&::EVP_CIPHER_CTX_free) cipher_free{};
  decltype(&::EVP_EncryptInit_ex) encrypt_init{};
  decltype(&::EVP_EncryptUpdate) encrypt_update{};
  decltype(&::EVP_EncryptFinal_ex) encrypt_final{};
  decltype(&::EVP_DecryptInit_ex) decrypt_init{};
  decltype(&::EVP_DecryptUpdate) decrypt_update{};
  decltype(&::EVP_DecryptFinal_ex) decrypt_final{};
  decltype(&::EVP_CIPHER_CTX_ctrl) cipher_control{};
  decltype(&::EVP_aes_128_gcm) aes_128_gcm{};
  decltype(&::EVP_aes_256_gcm) aes_256_gcm{};
  decltype(&::EVP_MAC_fetch) mac_fetch{};
  decltype(&::EVP_MAC_free) mac_free{};
  decltype(&::EVP_MAC_CTX_new) mac_new{};
  decltype(&::EVP_MAC_CTX_free) mac_ctx_free{};
  decltype(&::EVP_MAC_init) mac_init{};
  decltype(&::EVP_MAC_update) mac_update{};
  decltype(&::EVP_MAC_final) mac_final{};
  decltype(&::OSSL_PARAM_construct_utf8_string) param_text{};
  decltype(&::OSSL_PARAM_construct_end) param_end{};
  decltype(&::EVP_Digest) digest{};
  decltype(&::EVP_sha256) sha256{};
  decltype(&::OPENSSL_cleanse) cleanse{};
  decltype(&::ERR_get_error) get_error{};
  decltype(&::ERR_error_string_n) error_text{};
  decltype(&::ERR_clear_error) clear_errors{};
  decltype(&::X509_free) x509_free{};
  decltype(&::X509_verify_cert_error_string) x509_verify_text{};
  decltype(&::X509_check_ip) x509_check_ip{};
  decltype(&::X509_get_ext_d2i) x509_extension{};
  decltype(&::GENERAL_NAMES_free) general_names_free{};
  decltype(&::OPENSSL_sk_num) stack_size{};
  decltype(&::OPENSSL_sk_value) stack_value{};

  decltype(&::TLS_method) tls_method{};
  decltype(&::SSL_CTX_new) ctx_new{};
  decltype(&::SSL_CTX_free) ctx_free{};
  decltype(&::SSL_CTX_ctrl) ctx_control{};
  decltype(&::SSL_CTX_set_options) ctx_set_options{};
  decltype(&::SSL_CTX_set_verify) ctx_set_verify{};
  decltype(&::SSL_CTX_set_session_id_context) ctx_set_session_context{};
  decltype(&::SSL_CTX_set_ciphersuites) ctx_set_ciphersuites{};
  decltype(&::SSL_CTX_use_certificate_chain_file) ctx_use_certificate{};
  decltype(&::SSL_CTX_use_PrivateKey_file) ctx_use_key{};
  decltype(&::SSL_CTX_check_private_key) ctx_check_key{};
  decltype(&::SSL_CTX_load_verify_locations) ctx_load_authorities{};
  decltype(&::SSL_CTX_set_psk_use_session_callback) ctx_on_use_psk{};
  decltype(&::SSL_CTX_set_psk_find_session_callback) ctx_on_find_psk{};
  decltype(&::SSL_new) ssl_new{};
  decltype(&::SSL_free) ssl_free{};
  decltype(&::SSL_set_fd) ssl_set_fd{};
  decltype(&::SSL_set_options) ssl_set_options{};
  decltype(&::SSL_set_connect_state) ssl_set_connect_state{};
  decltype(&::SSL_set_accept_state) ssl_set_accept_state{};
  decltype(&::SSL_do_handshake) ssl_do_handshake{};
  decltype(&::SSL_read) ssl_read{};
  decltype(&::SSL_write) ssl_write{};
  decltype(&::SSL_pending) ssl_pending{};
  decltype(&::SSL_ctrl) ssl_control{};
  decltype(&::SSL_get_error) ssl_get_error{};
  decltype(&::SSL_shutdown) ssl_shutdown{};
  decltype(&::SSL_session_reused) ssl_used_psk{};
  decltype(&::SSL_CIPHER_find) cipher_find{};
  decltype(&::SSL_get1_peer_certificate) ssl_peer_certificate{};
  decltype(&::SSL_get_verify_result) ssl_verify_result{};
  decltype(&::SSL_SESSION_new) session_new{};
  decltype(&::SSL_SESSION_free) session_free{};
  decltype(&::SSL_SESSION_set1_master_key) session_set_key{};
  decltype(&::SSL_SESSION_set1_id_context) session_set_context{};
  decltype(&::SSL_SESSION_set_cipher) session_set_cipher{};
  decltype(&::SSL_SESSION_set_protocol_version) session_set_version{};
  decltype(&::SSL_get_ex_data) ssl_get_data{};
  decltype(&::SSL_CTX_set_ex_data) ctx_set_data{};
  decltype(&::SSL_CTX_get_ex_data) ctx_get_data{};
  decltype(&::SSL_get_SSL_CTX) ssl_get_ctx{};
};

}  // namespace verbena::host
