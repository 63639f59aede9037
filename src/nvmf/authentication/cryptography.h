// Cryptography: what DH-HMAC-CHAP needs of a library. nvmf_program has it on OpenSSL. The
// protocol's code takes it as a parameter, so that it runs in the simulator and in fuzz targets
// without OpenSSL.
#pragma once

#include <memory>

#include "wire/nvme/authentication.h"

namespace verbena::nvmf {

using Bytes = std::span<const u8>;

// A fresh private value of a group, for one transaction.
class DHExchange {
 public:
  virtual ~DHExchange() = default;
  // As long as the group's prime.
  [[nodiscard]] virtual std::vector<u8> public_value() const = 0;
  // As long as the group's prime; empty: `peer` is no valid public value of the group.
  [[nodiscard]] virtual std::vector<u8> shared_secret(Bytes peer) const = 0;
};

class Cryptography {
 public:
  virtual ~Cryptography() = default;
  virtual void fill_random(std::span<u8> out) = 0;
  [[nodiscard]] virtual std::vector<u8> hash(nvme::AuthHash hash, Bytes data) const = 0;
  [[nodiscard]] virtual std::vector<u8> hmac(nvme::AuthHash hash, Bytes key, Bytes data) const = 0;
  // `group` is not kNull. nullptr: the library does not have the group.
  [[nodiscard]] virtual std::unique_ptr<DHExchange> begin_exchange(nvme::DHGroup group) = 0;
};

}  // namespace verbena::nvmf
