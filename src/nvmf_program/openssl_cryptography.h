// OpenSSLCryptography: nvmf::Cryptography on libcrypto 3.0 or newer.
#pragma once

#include "nvmf/authentication/cryptography.h"

namespace verbena::nvmf_program {

class OpenSSLCryptography final : public nvmf::Cryptography {
 public:
  void fill_random(std::span<u8> out) override;
  [[nodiscard]] std::vector<u8> hash(nvme::AuthHash hash, nvmf::Bytes data) const override;
  [[nodiscard]] std::vector<u8> hmac(nvme::AuthHash hash, nvmf::Bytes key,
                                     nvmf::Bytes data) const override;
  [[nodiscard]] std::unique_ptr<nvmf::DHExchange> begin_exchange(nvme::DHGroup group) override;
};

}  // namespace verbena::nvmf_program
