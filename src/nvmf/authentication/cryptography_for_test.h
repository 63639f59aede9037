// ToyCryptography: nvmf::Cryptography with the right lengths and the right algebra, and no
// security. Its random numbers repeat, so that simulations and fuzz targets do.
#pragma once

#include "base/prng.h"
#include "nvmf/authentication/cryptography.h"

namespace verbena::nvmf::test {

class ToyExchange final : public DHExchange {
 public:
  ToyExchange(u64 exponent, std::size_t bytes) : exponent_(exponent), bytes_(bytes) {}
  [[nodiscard]] std::vector<u8> public_value() const override { return padded(power(kBase)); }
  [[nodiscard]] std::vector<u8> shared_secret(Bytes peer) const override {
    if (peer.size() != bytes_) return {};
    const u64 value = load_le<u64>(peer.data());
    if (value <= 1 || value >= kPrime - 1) return {};
    return padded(power(value));
  }

 private:
  static constexpr u64 kPrime = 2147483647, kBase = 7;  // 2^31 - 1 and a primitive root

  [[nodiscard]] u64 power(u64 base) const {
    u64 result = 1;
    for (u64 e = exponent_; e != 0; e >>= 1, base = base * base % kPrime)
      if ((e & 1) != 0) result = result * base % kPrime;
    return result;
  }
  [[nodiscard]] std::vector<u8> padded(u64 value) const {
    std::vector<u8> out(bytes_);
    store_le<u64>(out.data(), value);
    return out;
  }

  const u64 exponent_;
  const std::size_t bytes_;
};

class ToyCryptography final : public Cryptography {
 public:
  void fill_random(std::span<u8> out) override {
    for (u8& byte : out) byte = static_cast<u8>(prng_.below(256));
  }
  [[nodiscard]] std::vector<u8> hash(nvme::AuthHash hash, Bytes data) const override {
    return hmac(hash, {}, data);
  }
  [[nodiscard]] std::vector<u8> hmac(nvme::AuthHash hash, Bytes key, Bytes data) const override {
    u64 state = 0xcbf29ce484222325 + key.size();  // FNV-1a
    for (const Bytes part : {key, data})
      for (const u8 byte : part) state = (state ^ byte) * 0x100000001b3;
    std::vector<u8> out(nvme::hash_bytes(hash));
    for (u8& byte : out) {
      state = (state ^ 1) * 0x100000001b3;
      byte = static_cast<u8>(state >> 32);
    }
    return out;
  }
  [[nodiscard]] std::unique_ptr<DHExchange> begin_exchange(nvme::DHGroup group) override {
    return std::make_unique<ToyExchange>(2 + prng_.below(1'000'000), nvme::dh_bytes(group));
  }

 private:
  PRNG prng_{1};
};

}  // namespace verbena::nvmf::test
