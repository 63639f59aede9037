// Keys and packets of PSP: the master keys, the SPIs, the cleartext packet and the derived keys are
// those that the specification publishes with its reference program. The encrypted packets were
// computed by another implementation (Python's cryptography).
#include "host/encryption/psp_cipher.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace verbena::host {
namespace {

std::vector<u8> from_hex(const std::string& text) {
  std::vector<u8> out;
  for (std::size_t at = 0; at < text.size(); at += 2)
    out.push_back(static_cast<u8>(std::stoul(text.substr(at, 2), nullptr, 16)));
  return out;
}

PSPMasterKey master_of(const std::string& text) {
  PSPMasterKey key{};
  std::ranges::copy(from_hex(text), key.begin());
  return key;
}

const OpenSSL& openssl() {
  static const Expected<const OpenSSL*> loaded = OpenSSL::load();
  return **loaded;
}

const PSPMasterKey kMaster0 =
    master_of("34448a064292601b11a0978f56a2d34cf3fc35ede1a6bc04f8db3e5243a2b0ca");
const PSPMasterKey kMaster1 =
    master_of("563952565d3a78ae773ec1b779f2f2d99f4a7f53a6fbb9b07d5b71f39364d739");

std::vector<u8> derived(const PSPMasterKey& master, u32 spi, PSPVersion version) {
  const PSPKey key = derive_psp_key(openssl(), master, spi, version);
  return {key.used().begin(), key.used().end()};
}

TEST(PSPCipherTest, PublishedKeys) {
  EXPECT_EQ(derived(kMaster0, 0x12345678, PSPVersion::kAES128GCM),
            from_hex("96c22dc799198090b74b70ae468e4e30"));
  EXPECT_EQ(derived(kMaster0, 0x12345678, PSPVersion::kAES256GCM),
            from_hex("2b7d72074e42ca334487f2990e3f8c4037e436f38283449b76463e9b7fb2e3de"));
  EXPECT_EQ(derived(kMaster1, 0x9a345678, PSPVersion::kAES128GCM),
            from_hex("3946da2554eae46ad1ef77a64372edc4"));
  EXPECT_EQ(derived(kMaster1, 0x9a345678, PSPVersion::kAES256GCM),
            from_hex("fa00f609df6020289a1c93d6027081a637ad45b24a5576b36e6f49dd43114d80"));
}

// The UDP packet of the reference program's capture, 1392 bytes of payload that count up.
std::vector<u8> cleartext(PSPVersion version, u8 crypt_offset) {
  std::vector<u8> packet(PSPHeader::kSize);
  PSPHeader{.crypt_offset = crypt_offset, .version = version, .spi = 0x9a345678, .iv = 1}.encode(
      std::span(packet).first<PSPHeader::kSize>());
  for (const u8 byte : from_hex("2b6756ce0578893b")) packet.push_back(byte);
  for (u32 i = 0; i < 1392; ++i) packet.push_back(static_cast<u8>(i));
  packet.resize(packet.size() + PSPHeader::kICVSize);
  return packet;
}

struct Expectation {
  PSPVersion version;
  u8 crypt_offset;
  const char* begin;  // of what follows the PSP header
  const char* icv;
};

class PSPPackets : public testing::TestWithParam<Expectation> {};

TEST_P(PSPPackets, SealAndOpen) {
  const auto& [version, crypt_offset, begin, icv] = GetParam();
  const std::vector<u8> clear = cleartext(version, crypt_offset);
  const std::size_t clear_bytes = PSPHeader::kSize + 4u * crypt_offset;
  const PSPKey key = derive_psp_key(openssl(), kMaster1, 0x9a345678, version);
  PSPCipher sealer(openssl(), key, PSPCipher::Direction::kSeal);
  PSPCipher opener(openssl(), key, PSPCipher::Direction::kOpen);

  std::vector<u8> packet = clear;
  sealer.seal(packet, clear_bytes);
  EXPECT_TRUE(std::ranges::equal(std::span(packet).subspan(16, 16), from_hex(begin)));
  EXPECT_TRUE(std::ranges::equal(std::span(packet).last(16), from_hex(icv)));

  for (const std::size_t at : {std::size_t{0}, std::size_t{2}, std::size_t{9}, std::size_t{17},
                               std::size_t{700}, packet.size() - 1}) {
    std::vector<u8> changed = packet;
    changed[at] ^= 1;
    EXPECT_FALSE(opener.open(changed, clear_bytes)) << at;
  }
  ASSERT_TRUE(opener.open(packet, clear_bytes));
  EXPECT_TRUE(std::ranges::equal(std::span(packet).first(packet.size() - 16),
                                 std::span(clear).first(clear.size() - 16)));
}

INSTANTIATE_TEST_SUITE_P(
    Reference, PSPPackets,
    testing::Values(Expectation{PSPVersion::kAES128GCM, 1, "2b6756ce6c83a158906f6e952004d2f5",
                                "7ef9e38fabe889802ed5043fc125467f"},
                    Expectation{PSPVersion::kAES128GCM, 0, "429c7ead9516e5ad2400d6f1c92ba7f6",
                                "2d7ca87040af29b496d3721afef0b7cd"},
                    Expectation{PSPVersion::kAES256GCM, 1, "2b6756ce130040d8d30ecdcbc253049d",
                                "f6167e1473f31a8077f055c41ec13db7"},
                    Expectation{PSPVersion::kAES256GCM, 0, "3d1f9f2dd67746f3c6570099a53c554d",
                                "2c0f4d9e6bde911056434da81f3e8d97"}));

TEST(PSPCipherTest, RefusesShortPackets) {
  PSPCipher opener(openssl(), PSPKey{}, PSPCipher::Direction::kOpen);
  std::vector<u8> packet(PSPHeader::kSize + PSPHeader::kICVSize - 1);
  EXPECT_FALSE(opener.open(packet, PSPHeader::kSize));
}

}  // namespace
}  // namespace verbena::host
