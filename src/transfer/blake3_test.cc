#include "transfer/blake3.h"

#include <gtest/gtest.h>

#include <vector>

namespace verbena::transfer {
namespace {

struct Blake3Case {
  std::size_t bytes;
  const char* hash;
};
// The hashes of bytes 0, 1, ..., 250, 0, 1, ..., as the reference implementation computes them.
constexpr Blake3Case kBlake3Cases[] = {
    {0, "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"},
    {1, "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213"},
    {63, "e9bc37a594daad83be9470df7f7b3798297c3d834ce80ba85d6e207627b7db7b"},
    {64, "4eed7141ea4a5cd4b788606bd23f46e212af9cacebacdc7d1f4c6dc7f2511b98"},
    {65, "de1e5fa0be70df6d2be8fffd0e99ceaa8eb6e8c93a63f2d8d1c30ecb6b263dee"},
    {1023, "10108970eeda3eb932baac1428c7a2163b0e924c9a9e25b35bba72b28f70bd11"},
    {1024, "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7"},
    {1025, "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444"},
    {2048, "e776b6028c7cd22a4d0ba182a8bf62205d2ef576467e838ed6f2529b85fba24a"},
    {2049, "5f4d72f40d7a5f82b15ca2b2e44b1de3c2ef86c426c95c1af0b6879522563030"},
    {3073, "7124b49501012f81cc7f11ca069ec9226cecb8a2c850cfe644e327d22d3e1cd3"},
    {5120, "9cadc15fed8b5d854562b26a9536d9707cadeda9b143978f319ab34230535833"},
    {7169, "a003fc7a51754a9b3c7fae0367ab3d782dccf28855a03d435f8cfe74605e7817"},
    {16384, "f875d6646de28985646f34ee13be9a576fd515f76b5b0a26bb324735041ddde4"},
    {16385, "1dabe216be2578830263b049de1639f39f05a4da616b9b78c7a5e4e41662fd1f"},
    {17409, "50bc54238ac9271c9f3471f5206a04eb25d2e26b3214ed971cc55230b0d22864"},
    {31744, "62b6960e1a44bcc1eb1a611a8d6235b6b4b78f32e7abc4fb4c6cdcce94895c47"},
    {102400, "bc3e3d41a1146b069abffad3c0d44860cf664390afce4d9661f7902e7943e085"},
    {1048577, "2f053cd7472cf0cd2f9adaf45c1180255b91b9a865404a63671a0ee5f792ed33"},
};

TEST(Blake3, AgreesWithTheReference) {
  for (const auto& [bytes, hash] : kBlake3Cases) {
    std::vector<u8> input(bytes);
    for (std::size_t i = 0; i < bytes; ++i) input[i] = static_cast<u8>(i % 251);
    EXPECT_EQ(to_hex(blake3(input)), hash) << bytes;
  }
}

TEST(Blake3, EachByteCounts) {
  std::vector<u8> input(40000, 7);
  const Hash before = blake3(input);
  for (const std::size_t at : {0u, 1023u, 1024u, 16383u, 16384u, 39999u}) {
    input[at] ^= 1;
    EXPECT_NE(blake3(input), before) << at;
    input[at] ^= 1;
  }
  EXPECT_EQ(blake3(input), before);
}

TEST(HashText, IsReadBackAndNothingElseIs) {
  const Hash hash = blake3({});
  const std::string text = to_hex(hash);
  EXPECT_EQ(hash_from_hex(text), hash);
  EXPECT_EQ(hash_from_hex(text.substr(1)), std::nullopt);
  EXPECT_EQ(hash_from_hex(text + "0"), std::nullopt);
  for (const char wrong : {'g', ' ', '-', '+', 'x'})
    EXPECT_EQ(hash_from_hex(text.substr(0, 62) + "0" + wrong), std::nullopt) << wrong;
}

}  // namespace
}  // namespace verbena::transfer
