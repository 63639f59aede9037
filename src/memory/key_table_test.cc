#include "memory/key_table.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace verbena {
namespace {

KeyEntry region_of_length(u64 length) {
  KeyEntry entry;
  entry.kind = KeyKind::kRegion;
  entry.length = length;
  return entry;
}

TEST(KeyTableTest, StartsSmallAndGrowsAsEntriesCome) {
  KeyTable table{PRNG(1)};
  EXPECT_LE(table.slots().size() * sizeof(KeyEntry), 1024u);
  for (u32 i = 0; i < 1000; ++i) table.insert(region_of_length(i));
  EXPECT_EQ(table.size(), 1000u);
  EXPECT_EQ(table.slots().size(), 2048u);
}

TEST(KeyTableTest, KeysAreUnpredictableButReplayFromTheSeed) {
  std::set<u32> of_two_seeds;
  for (const u64 seed : {1u, 2u}) {
    KeyTable table{PRNG(seed)};
    KeyTable again{PRNG(seed)};
    for (u32 i = 0; i < 100; ++i) {
      const u32 key = table.insert({.kind = KeyKind::kRegion}).key;
      EXPECT_NE(key >> kKeyVariantBits, 0u);
      EXPECT_EQ(again.insert({.kind = KeyKind::kRegion}).key, key);
      of_two_seeds.insert(key);
    }
  }
  EXPECT_EQ(of_two_seeds.size(), 200u);
}

TEST(KeyTableTest, DrawVariantChangesOnlyTheVariant) {
  KeyTable table{PRNG(3)};
  std::set<u32> variants;
  for (u32 i = 0; i < 10'000; ++i) {
    const u32 key = table.draw_variant(0xabcdef12);
    EXPECT_NE(key, 0xabcdef12u);
    EXPECT_EQ(key >> kKeyVariantBits, 0xabcdefu);
    variants.insert(key);
  }
  EXPECT_EQ(variants.size(), 255u);
}

TEST(KeyTableTest, EmptyTableFindsNothingNotEvenKeyZero) {
  const KeyTable table{PRNG(4)};
  EXPECT_EQ(table.find(0), nullptr);
  EXPECT_EQ(table.find(0xffffffff), nullptr);
}

class KeyTableModel : public testing::TestWithParam<u64> {};

// Small tables and many erasures: probes run into each other and around the end.
TEST_P(KeyTableModel, FindsWhatAMapFinds) {
  PRNG prng(GetParam());
  KeyTable table(prng.fork());
  std::map<u32, u64> model;
  const u64 target = prng.in(1, 60);
  for (u64 step = 0; step < 2000; ++step) {
    if (model.size() < prng.below(2 * target)) {
      const u64 length = prng.next();
      EXPECT_TRUE(model.emplace(table.insert(region_of_length(length)).key, length).second);
    } else if (!model.empty()) {
      const auto victim =
          std::next(model.begin(), static_cast<std::ptrdiff_t>(prng.below(model.size())));
      table.erase(victim->first);
      EXPECT_EQ(table.find(victim->first), nullptr);
      model.erase(victim);
    }
    ASSERT_EQ(table.size(), model.size());
    for (const auto& [key, length] : model) {
      const KeyEntry* found = table.find(key);
      ASSERT_NE(found, nullptr) << "seed " << GetParam() << " step " << step;
      ASSERT_EQ(found->length, length);
      ASSERT_EQ(table.find(key ^ 1), nullptr);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, KeyTableModel, testing::Range<u64>(0, 20));

}  // namespace
}  // namespace verbena
