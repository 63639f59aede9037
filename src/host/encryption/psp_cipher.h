// PSPCipher: encrypts or decrypts the packets of one PSP association in place, by AES-GCM. The
// nonce is SPI and IV; what stands before the encrypted part is authenticated. PSP Architecture
// Specification, "Packet Encryption and Authentication". No allocation after construction. Not
// thread-safe.
#pragma once

#include <memory>

#include "host/encryption/psp_key.h"

namespace verbena::host {

class PSPCipher {
 public:
  enum class Direction : u8 { kSeal, kOpen };
  PSPCipher(const OpenSSL& ssl, const PSPKey& key, Direction direction);

  // `packet`: PSP header .. ICV. `clear_bytes`: of the header and the crypt offset. Encrypts what
  // is between them and the ICV, and writes the ICV.
  void seal(std::span<u8> packet, std::size_t clear_bytes);
  // Returns whether the packet is authentic. If not, its bytes are undefined.
  [[nodiscard]] bool open(std::span<u8> packet, std::size_t clear_bytes);

 private:
  struct Free {
    const OpenSSL* ssl;
    void operator()(EVP_CIPHER_CTX* context) const { ssl->cipher_free(context); }
  };

  const OpenSSL& ssl_;
  std::unique_ptr<EVP_CIPHER_CTX, Free> context_;
};

}  // namespace verbena::host
