#include "transfer/manifest.h"

#include <gtest/gtest.h>

namespace verbena::transfer {
namespace {

Manifest small_manifest() {
  return {.chunk_bytes = 4096,
          .files = {{.name = "a.safetensors", .bytes = 5000, .hashes = {Hash{1}, Hash{2}}},
                    {.name = "sub/config.json", .bytes = 0}}};
}

TEST(ManifestTest, DecodesWhatItEncodes) {
  const auto decoded = Manifest::decode(small_manifest().encode());
  ASSERT_TRUE(decoded.has_value()) << decoded.error();
  EXPECT_EQ(*decoded, small_manifest());
  EXPECT_EQ(decoded->chunks(), 2u);
  EXPECT_EQ(Places::bytes_for(*decoded), 2 * sizeof(Place) + 1);
}

TEST(ManifestTest, RefusesTruncationsAndWrongNumbers) {
  const std::string bytes = small_manifest().encode();
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(Manifest::decode(bytes.substr(0, length)).has_value()) << length;
  EXPECT_FALSE(Manifest::decode(bytes + "x").has_value());
  Manifest manifest = small_manifest();
  manifest.chunk_bytes = 1;
  EXPECT_FALSE(Manifest::decode(manifest.encode()).has_value());
  manifest = small_manifest();
  manifest.files[1].name = manifest.files[0].name;
  EXPECT_FALSE(Manifest::decode(manifest.encode()).has_value());
  manifest = small_manifest();
  manifest.files[1].bytes = ~u64{0};
  EXPECT_FALSE(Manifest::decode(manifest.encode()).has_value());
}

TEST(ManifestTest, NamesStayBelowTheFolder) {
  for (const char* const name : {"a", "a/b.c", "..a", "a..b/c"}) EXPECT_TRUE(is_safe_name(name));
  for (const char* const name : {"", "/a", "..", "a/../b", "a//b", "./a", "a/", "a\nb", "a/.."})
    EXPECT_FALSE(is_safe_name(name)) << name;
}

}  // namespace
}  // namespace verbena::transfer
