#include "models/hash_cache.h"

#include <filesystem>
#include <fstream>

#include <unistd.h>

#include <gtest/gtest.h>

namespace verbena::models {
namespace {

constexpr u64 kSecond = 1'000'000'000;
constexpr FileIdentity kFile = {
    .inode = 7, .bytes = 10'000, .modified_ns = 100 * kSecond, .changed_ns = 200 * kSecond};

std::vector<transfer::Hash> three_hashes() {
  std::vector<transfer::Hash> hashes(3);
  for (u8 i = 0; i < 3; ++i) hashes[i].fill(static_cast<u8>(i + 1));
  return hashes;
}

HashCache cache_of_one_file() {
  HashCache cache;
  cache.keep("a/b.safetensors", kFile, 4096, three_hashes(), 202 * kSecond);
  return cache;
}

TEST(HashCacheTest, FindsAFileThatIsTheSame) {
  const HashCache cache = cache_of_one_file();
  const auto* const found = cache.find("a/b.safetensors", kFile, 4096);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(*found, three_hashes());
}

TEST(HashCacheTest, AnyDifferenceMakesItAnotherFile) {
  const HashCache cache = cache_of_one_file();
  const auto finds = [&](auto change) {
    FileIdentity other = kFile;
    change(other);
    return cache.find("a/b.safetensors", other, 4096) != nullptr;
  };
  EXPECT_TRUE(finds([](FileIdentity&) {}));
  EXPECT_FALSE(finds([](FileIdentity& file) { ++file.inode; }));
  EXPECT_FALSE(finds([](FileIdentity& file) { ++file.bytes; }));
  EXPECT_FALSE(finds([](FileIdentity& file) { ++file.modified_ns; }));
  EXPECT_FALSE(finds([](FileIdentity& file) { --file.changed_ns; }));
  EXPECT_EQ(cache.find("a/b.safetensors", kFile, 8192), nullptr);
  EXPECT_EQ(cache.find("b.safetensors", kFile, 4096), nullptr);
}

// The next write could leave the same time stamp.
TEST(HashCacheTest, LeavesOutAFileThatWasWrittenShortlyBefore) {
  HashCache cache = cache_of_one_file();
  cache.keep("a/b.safetensors", kFile, 4096, three_hashes(), 202 * kSecond - 1);
  EXPECT_EQ(cache.files(), 0u);
  FileIdentity future = kFile;
  future.modified_ns = 900 * kSecond;  // a clock that is ahead
  cache.keep("a/b.safetensors", future, 4096, three_hashes(), 300 * kSecond);
  EXPECT_EQ(cache.files(), 0u);
}

TEST(HashCacheTest, DropsFilesWithOtherNames) {
  HashCache cache = cache_of_one_file();
  cache.retain({"a", "a/b.safetensors", "z"});
  EXPECT_EQ(cache.files(), 1u);
  cache.retain({"a"});
  EXPECT_EQ(cache.files(), 0u);
}

TEST(HashCacheTest, DecodesOnlyWhatIsWhole) {
  const HashCache cache = cache_of_one_file();
  const std::string bytes = cache.encode();
  EXPECT_EQ(HashCache::decode(bytes), cache);
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_EQ(HashCache::decode(std::string_view(bytes).substr(0, n)).files(), 0u) << n;
    std::string damaged = bytes;
    damaged[n] = static_cast<char>(damaged[n] ^ 0x10);
    EXPECT_EQ(HashCache::decode(damaged).files(), 0u) << n;
  }
  EXPECT_EQ(HashCache::decode(bytes + "x").files(), 0u);
}

TEST(HashCacheTest, SavesAndLoads) {
  const std::string folder =
      std::filesystem::temp_directory_path() / ("hash-cache-test-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  const std::string path = folder + "/" + HashCache::kFileName;
  EXPECT_EQ(HashCache::load(path).files(), 0u);
  EXPECT_EQ(HashCache::load(folder).files(), 0u);
  ASSERT_TRUE(cache_of_one_file().save(path).has_value());
  EXPECT_EQ(HashCache::load(path), cache_of_one_file());
  std::ofstream(path) << "no cache";
  EXPECT_EQ(HashCache::load(path).files(), 0u);
  ASSERT_TRUE(cache_of_one_file().save(path).has_value());
  EXPECT_EQ(HashCache::load(path).files(), 1u);
  EXPECT_FALSE(cache_of_one_file().save(folder + "/nowhere/x").has_value());
  const std::filesystem::directory_iterator left(folder);
  EXPECT_EQ(std::distance(begin(left), end(left)), 1);  // nothing is left of the attempts
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace verbena::models
