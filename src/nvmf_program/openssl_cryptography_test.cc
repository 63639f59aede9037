// Responses of DH-HMAC-CHAP as Python's hmac and hashlib compute them from the text of NVM Express
// Base 2.0, 8.13.5, and the Diffie-Hellman groups of RFC 7919.
#include "nvmf_program/openssl_cryptography.h"

#include <gtest/gtest.h>

#include "nvmf/authentication/dh_hmac_chap.h"

namespace verbena::nvmf_program {
namespace {

using nvme::AuthHash;
using nvme::DHGroup;
using nvmf::CHAPRole;

std::string hex_of(nvmf::Bytes bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const u8 byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::vector<u8> ascending(std::size_t bytes, u8 first) {
  std::vector<u8> out(bytes);
  for (std::size_t i = 0; i < bytes; ++i) out[i] = static_cast<u8>(first + i);
  return out;
}

struct Responses {
  AuthHash hash;
  std::string_view host;        // NULL group, key without a transform
  std::string_view controller;  // a shared secret of 256 bytes, key with a transform
};
constexpr std::array<Responses, 3> kExpected{
    {{AuthHash::kSHA256, "ca83ced1849e9b6082b9186aee8ae18bc64396dc8b6dc2c23ccdb9721d2547a8",
      "528ccd47d0d033d4e97f0c366cc27b12395a6b532d92bea1dd65ba9951fb8009"},
     {AuthHash::kSHA384,
      "6c1a58c59ab5e8af550424018eb352ad3d2e8ae43d9b0164beea47af3ba884c18dcb5405af82086b0a514e1d"
      "44dbb5b1",
      "d7eecb8db3e16012b53a1086304a5b9776d8ea0ad724beb949398e1ba42cba41e3dfd7cf144a2e469735f32d"
      "adeebc82"},
     {AuthHash::kSHA512,
      "43c45f8ffb74cdbbb6265a5f4b4667f22d1db5415f25c5ca1918423323938acaa96fc768c70831b14149f424"
      "c56d95159d1c24955d188017308f8b645aaa8040",
      "b243695081856ba4f84fca24228dc2cbea275e3d1207b679ed2b9857d81d467625abdcfa0b6513c8d97421b8"
      "c5a640ec853b7ff5278d8f6bafbede0fdf75d15e"}}};

TEST(OpenSSLCryptography, ResponsesAreThoseOfTheStandard) {
  const OpenSSLCryptography cryptography;
  const nvmf::CHAPParties parties{.host_nqn = "nqn.2026-01.test:host",
                                  .subsystem_nqn = "nqn.2026-01.test:disk"};
  for (const Responses& expected : kExpected) {
    const auto challenge = ascending(nvme::hash_bytes(expected.hash), 0x80);
    EXPECT_EQ(hex_of(nvmf::chap_response(cryptography, CHAPRole::kHost, parties,
                                         {.hash = expected.hash, .t_id = 0x1122},
                                         {.key = ascending(32, 0)}, 0x01020304, challenge)),
              expected.host);
    EXPECT_EQ(hex_of(nvmf::chap_response(
                  cryptography, CHAPRole::kController, parties,
                  {.hash = expected.hash, .t_id = 7, .shared_secret = ascending(256, 0)},
                  {.key = ascending(32, 0), .transform = expected.hash}, 5, challenge)),
              expected.controller);
  }
}

TEST(OpenSSLCryptography, TwoSidesOfEachGroupShareASecret) {
  OpenSSLCryptography cryptography;
  EXPECT_EQ(cryptography.begin_exchange(DHGroup::kNull), nullptr);
  EXPECT_EQ(cryptography.begin_exchange(static_cast<DHGroup>(6)), nullptr);
  for (const DHGroup group : nvme::kDHGroups) {
    if (group == DHGroup::kNull) continue;
    const auto a = cryptography.begin_exchange(group), b = cryptography.begin_exchange(group);
    ASSERT_NE(a, nullptr);
    ASSERT_EQ(a->public_value().size(), nvme::dh_bytes(group));
    const auto secret = a->shared_secret(b->public_value());
    EXPECT_EQ(secret.size(), nvme::dh_bytes(group));
    EXPECT_EQ(secret, b->shared_secret(a->public_value()));
  }
}

TEST(OpenSSLCryptography, PublicValuesOutsideTheGroupAreRefused) {
  OpenSSLCryptography cryptography;
  const auto exchange = cryptography.begin_exchange(DHGroup::kFFDHE2048);
  std::vector<u8> value(256);
  EXPECT_TRUE(exchange->shared_secret(value).empty());  // 0
  value.back() = 1;
  EXPECT_TRUE(exchange->shared_secret(value).empty());
  std::ranges::fill(value, u8{0xff});  // greater than the prime
  EXPECT_TRUE(exchange->shared_secret(value).empty());
  const auto good = cryptography.begin_exchange(DHGroup::kFFDHE2048)->public_value();
  EXPECT_TRUE(exchange->shared_secret(nvmf::Bytes(good).first(255)).empty());
  EXPECT_FALSE(exchange->shared_secret(good).empty());
}

}  // namespace
}  // namespace verbena::nvmf_program
