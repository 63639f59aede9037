#include "host/encryption/psp_cipher.h"

#include "base/check.h"

namespace verbena::host {
namespace {

const EVP_CIPHER* cipher_of(const OpenSSL& ssl, PSPVersion version) {
  return version == PSPVersion::kAES128GCM ? ssl.aes_128_gcm() : ssl.aes_256_gcm();
}

// SPI and IV stand in the header in the nonce's order.
const u8* nonce_of(std::span<const u8> packet) { return packet.data() + PSPHeader::kSPIAt; }

}  // namespace

PSPCipher::PSPCipher(const OpenSSL& ssl, const PSPKey& key, Direction direction)
    : ssl_(ssl), context_(ssl.cipher_new(), Free{&ssl}) {
  CHECK(context_ != nullptr && is_encrypted(key.version));
  const auto init = direction == Direction::kSeal ? ssl.encrypt_init : ssl.decrypt_init;
  CHECK(init(context_.get(), cipher_of(ssl, key.version), nullptr, key.bytes.data(), nullptr) == 1);
}

void PSPCipher::seal(std::span<u8> packet, std::size_t clear_bytes) {
  CHECK(packet.size() >= clear_bytes + PSPHeader::kICVSize);
  const std::span<u8> icv = packet.last<PSPHeader::kICVSize>();
  const std::size_t size = packet.size() - clear_bytes - icv.size();
  u8* const secret = packet.data() + clear_bytes;
  EVP_CIPHER_CTX* const context = context_.get();
  int written = 0;
  const bool done =
      ssl_.encrypt_init(context, nullptr, nullptr, nullptr, nonce_of(packet)) == 1 &&
      ssl_.encrypt_update(context, nullptr, &written, packet.data(),
                          static_cast<int>(clear_bytes)) == 1 &&
      ssl_.encrypt_update(context, secret, &written, secret, static_cast<int>(size)) == 1 &&
      ssl_.encrypt_final(context, secret + written, &written) == 1 &&
      ssl_.cipher_control(context, EVP_CTRL_AEAD_GET_TAG, static_cast<int>(icv.size()),
                          icv.data()) == 1;
  CHECK(done);
}

bool PSPCipher::open(std::span<u8> packet, std::size_t clear_bytes) {
  if (packet.size() < clear_bytes + PSPHeader::kICVSize) return false;
  const std::span<u8> icv = packet.last<PSPHeader::kICVSize>();
  const std::size_t size = packet.size() - clear_bytes - icv.size();
  u8* const secret = packet.data() + clear_bytes;
  EVP_CIPHER_CTX* const context = context_.get();
  int written = 0;
  return ssl_.decrypt_init(context, nullptr, nullptr, nullptr, nonce_of(packet)) == 1 &&
         ssl_.decrypt_update(context, nullptr, &written, packet.data(),
                             static_cast<int>(clear_bytes)) == 1 &&
         ssl_.decrypt_update(context, secret, &written, secret, static_cast<int>(size)) == 1 &&
         ssl_.cipher_control(context, EVP_CTRL_AEAD_SET_TAG, static_cast<int>(icv.size()),
                             icv.data()) == 1 &&
         ssl_.decrypt_final(context, secret + written, &written) == 1;
}

}  // namespace verbena::host
