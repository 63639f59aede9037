#include "host/encryption/psp_key.h"

#include "base/bytes.h"
#include "base/check.h"

namespace verbena::host {
namespace {

constexpr std::size_t kPRFSize = 16;  // of AES-CMAC's output, and of one block of input

// Counter, label "Pv" and the version's digit, SPI, length of the key in bits.
std::array<u8, kPRFSize> derivation_block(u32 counter, u32 spi, const PSPKey& key) {
  std::array<u8, kPRFSize> block{};
  Writer<kPRFSize> w(block);
  w.put32<0>(counter);
  w.put8<4>('P');
  w.put8<5>('v');
  w.put8<6>(static_cast<u8>('0' + static_cast<u8>(key.version)));
  w.put32<8>(spi);
  w.put32<12>(static_cast<u32>(8 * key.size()));
  return block;
}

void cmac(const OpenSSL& ssl, const PSPMasterKey& master, std::span<const u8> in,
          std::span<u8, kPRFSize> out) {
  EVP_MAC* const mac = ssl.mac_fetch(nullptr, "CMAC", nullptr);
  CHECK(mac != nullptr);
  EVP_MAC_CTX* const context = ssl.mac_new(mac);
  char cipher[] = "AES-256-CBC";
  const OSSL_PARAM parameters[] = {ssl.param_text(OSSL_MAC_PARAM_CIPHER, cipher, 0),
                                   ssl.param_end()};
  std::size_t size = 0;
  const bool done = context != nullptr &&
                    ssl.mac_init(context, master.data(), master.size(), parameters) == 1 &&
                    ssl.mac_update(context, in.data(), in.size()) == 1 &&
                    ssl.mac_final(context, out.data(), &size, out.size()) == 1;
  ssl.mac_ctx_free(context);
  ssl.mac_free(mac);
  CHECK(done && size == kPRFSize);
}

}  // namespace

PSPKey derive_psp_key(const OpenSSL& ssl, const PSPMasterKey& master, u32 spi, PSPVersion version) {
  CHECK(is_encrypted(version));
  PSPKey key{.version = version};
  for (u32 block = 0; block * kPRFSize < key.size(); ++block)
    cmac(ssl, master, derivation_block(block + 1, spi, key),
         std::span(key.bytes).subspan(block * kPRFSize).first<kPRFSize>());
  return key;
}

}  // namespace verbena::host
