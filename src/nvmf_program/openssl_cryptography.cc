#include "nvmf_program/openssl_cryptography.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "base/check.h"

namespace verbena::nvmf_program {
namespace {

using nvme::AuthHash;
using nvme::DHGroup;

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using KeyContext = std::unique_ptr<EVP_PKEY_CTX, decltype(&EVP_PKEY_CTX_free)>;

const EVP_MD* digest_of(AuthHash hash) {
  switch (hash) {
    case AuthHash::kSHA256: return EVP_sha256();
    case AuthHash::kSHA384: return EVP_sha384();
    case AuthHash::kSHA512: return EVP_sha512();
  }
  CHECK_UNREACHABLE();  // the protocol's code refuses others
}

const char* name_of_group(DHGroup group) {
  switch (group) {
    case DHGroup::kNull: break;
    case DHGroup::kFFDHE2048: return "ffdhe2048";
    case DHGroup::kFFDHE3072: return "ffdhe3072";
    case DHGroup::kFFDHE4096: return "ffdhe4096";
    case DHGroup::kFFDHE6144: return "ffdhe6144";
    case DHGroup::kFFDHE8192: return "ffdhe8192";
  }
  return nullptr;
}

Key generate(const char* group) {
  const KeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, "DH", nullptr), EVP_PKEY_CTX_free);
  std::string name = group;
  const std::array parameters{
      OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, name.data(), 0),
      OSSL_PARAM_construct_end()};
  EVP_PKEY* key = nullptr;
  if (context != nullptr && EVP_PKEY_keygen_init(context.get()) > 0 &&
      EVP_PKEY_CTX_set_params(context.get(), parameters.data()) > 0)
    (void)EVP_PKEY_generate(context.get(), &key);
  return {key, EVP_PKEY_free};
}

class OpenSSLExchange final : public nvmf::DHExchange {
 public:
  OpenSSLExchange(Key key, std::size_t bytes) : key_(std::move(key)), bytes_(bytes) {}

  [[nodiscard]] std::vector<u8> public_value() const override {
    u8* encoded = nullptr;  // OpenSSL pads it to the length of the prime
    const std::size_t length = EVP_PKEY_get1_encoded_public_key(key_.get(), &encoded);
    CHECK(length == bytes_);
    std::vector<u8> value(encoded, encoded + length);
    OPENSSL_free(encoded);
    return value;
  }

  [[nodiscard]] std::vector<u8> shared_secret(nvmf::Bytes peer) const override {
    const Key other(EVP_PKEY_new(), EVP_PKEY_free);
    const bool is_encoded =
        peer.size() == bytes_ && EVP_PKEY_copy_parameters(other.get(), key_.get()) > 0 &&
        EVP_PKEY_set1_encoded_public_key(other.get(), peer.data(), peer.size()) > 0;
    if (!is_encoded) return {};
    const KeyContext context(EVP_PKEY_CTX_new_from_pkey(nullptr, key_.get(), nullptr),
                             EVP_PKEY_CTX_free);
    unsigned pads = 1;
    const std::array parameters{OSSL_PARAM_construct_uint(OSSL_EXCHANGE_PARAM_PAD, &pads),
                                OSSL_PARAM_construct_end()};
    // The last argument: the peer's value is validated. SP 800-56A, 5.6.2.3.1
    const bool is_valid = context != nullptr &&
                          EVP_PKEY_derive_init_ex(context.get(), parameters.data()) > 0 &&
                          EVP_PKEY_derive_set_peer_ex(context.get(), other.get(), 1) > 0;
    std::vector<u8> secret(bytes_);
    std::size_t length = secret.size();
    if (!is_valid || EVP_PKEY_derive(context.get(), secret.data(), &length) <= 0) return {};
    CHECK(length == bytes_);
    return secret;
  }

 private:
  const Key key_;
  const std::size_t bytes_;
};

}  // namespace

void OpenSSLCryptography::fill_random(std::span<u8> out) {
  CHECK(RAND_bytes(out.data(), static_cast<int>(out.size())) == 1);
}

std::vector<u8> OpenSSLCryptography::hash(AuthHash hash, nvmf::Bytes data) const {
  std::vector<u8> out(nvme::hash_bytes(hash));
  CHECK(EVP_Digest(data.data(), data.size(), out.data(), nullptr, digest_of(hash), nullptr) == 1);
  return out;
}

std::vector<u8> OpenSSLCryptography::hmac(AuthHash hash, nvmf::Bytes key, nvmf::Bytes data) const {
  std::vector<u8> out(nvme::hash_bytes(hash));
  CHECK(HMAC(digest_of(hash), key.data(), static_cast<int>(key.size()), data.data(), data.size(),
             out.data(), nullptr) != nullptr);
  return out;
}

std::unique_ptr<nvmf::DHExchange> OpenSSLCryptography::begin_exchange(DHGroup group) {
  const char* const name = name_of_group(group);
  if (name == nullptr) return nullptr;
  Key key = generate(name);
  if (key == nullptr) return nullptr;
  return std::make_unique<OpenSSLExchange>(std::move(key), nvme::dh_bytes(group));
}

}  // namespace verbena::nvmf_program
