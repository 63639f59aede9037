#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/prng.h"
#include "transfer/block_pool.h"
#include "transfer/kv_layout.h"

namespace verbena::transfer {
namespace {

using testing::ElementsAre;

TEST(KVLayoutTest, SizesOfPublishedModels) {
  const KVLayout layout =
      KVLayout::of(*find_kv_model("llama3-70b"), 8, 16, 256, KVLayout::Order::kLayers);
  EXPECT_EQ(layout.block_bytes, 16u * 1 * 128 * 2);
  EXPECT_EQ(layout.bytes(), 80u * 2 * 256 * 4096);
  const KVLayout latent =
      KVLayout::of(*find_kv_model("deepseek-v3"), 8, 64, 10, KVLayout::Order::kLayers);
  EXPECT_EQ(latent.order, KVLayout::Order::kLatent);
  EXPECT_EQ(latent.block_bytes, 64u * 576 * 2);
  EXPECT_EQ(find_kv_model("gpt-9"), nullptr);
}

TEST(KVLayoutTest, EachBlockHasItsOwnPlace) {
  for (const auto order : {KVLayout::Order::kLayers, KVLayout::Order::kPairs,
                           KVLayout::Order::kSplit, KVLayout::Order::kLatent}) {
    const KVLayout layout{.order = order, .layers = 3, .blocks = 5, .block_bytes = 64};
    std::set<u64> offsets;
    for (u32 layer = 0; layer < 3; ++layer)
      for (u32 half = 0; half < layout.halves(); ++half)
        for (u32 block = 0; block < 5; ++block)
          offsets.insert(layout.offset_of(layer, half, block));
    EXPECT_EQ(offsets.size(), 3u * 5 * layout.halves());
    EXPECT_EQ(*offsets.rbegin() + 64, layout.bytes());
  }
}

TEST(KVLayoutTest, PlacesAsTheEnginesHaveThem) {
  KVLayout layout{.layers = 2, .blocks = 4, .block_bytes = 10};
  EXPECT_EQ(layout.offset_of(1, 1, 2), (1u * 2 * 4 + 4 + 2) * 10);
  layout.order = KVLayout::Order::kPairs;
  EXPECT_EQ(layout.offset_of(1, 1, 2), ((4u + 2) * 2 + 1) * 10);
  layout.order = KVLayout::Order::kSplit;
  EXPECT_EQ(layout.offset_of(1, 1, 2), (2u * 4 + 4 + 2) * 10);
  const std::vector<u32> blocks = {3, 0};
  layout.order = KVLayout::Order::kPairs;
  EXPECT_THAT(
      kv_list(layout, 1000, 7, 0, blocks),
      ElementsAre(Block{1060, 10, 7}, Block{1000, 10, 7}, Block{1070, 10, 7}, Block{1010, 10, 7}));
}

std::vector<u64> hashes_of(u64 first, u32 count) {
  std::vector<u64> hashes;
  for (u32 i = 0; i < count; ++i) hashes.push_back(first + i);
  return hashes;
}

TEST(BlockPoolTest, SharesPublishedPrefixes) {
  BlockPool pool(8);
  const auto one = pool.allocate(hashes_of(100, 3), 1);
  ASSERT_TRUE(one);
  EXPECT_EQ(one->reused, 0u);
  EXPECT_EQ(pool.allocate(hashes_of(100, 3), 0)->reused, 0u);  // not published yet
  pool.publish(one->blocks);
  const auto two = pool.allocate(hashes_of(100, 3), 0);
  ASSERT_FALSE(two && two->reused != 3);
  EXPECT_THAT(std::vector<u32>(two->blocks), testing::ElementsAreArray(one->blocks.data(), 3));
  EXPECT_EQ(pool.used(), 7u);
}

TEST(BlockPoolTest, EvictsTheLeastRecentlyUsed) {
  BlockPool pool(4);
  for (const u64 hash : {1, 2, 3, 4}) {
    const auto each = pool.allocate(std::vector<u64>{hash}, 0);
    pool.publish(each->blocks);
    pool.release(each->blocks);
  }
  const auto again = pool.allocate(std::vector<u64>{1}, 0);  // now it is the last one used
  EXPECT_EQ(again->reused, 1u);
  pool.release(again->blocks);
  const auto more = pool.allocate({}, 2);
  ASSERT_TRUE(more);
  EXPECT_EQ(pool.evictions(), 2u);
  EXPECT_EQ(pool.count_hits(std::vector<u64>{1}), 1u);
  EXPECT_EQ(pool.count_hits(std::vector<u64>{2}), 0u);
  EXPECT_EQ(pool.count_hits(std::vector<u64>{4}), 1u);
}

TEST(BlockPoolTest, NeverEvictsWhatIsHeld) {
  BlockPool pool(4);
  const auto held = pool.allocate(hashes_of(1, 3), 0);
  pool.publish(held->blocks);
  EXPECT_FALSE(pool.allocate({}, 2));
  EXPECT_FALSE(pool.allocate(hashes_of(1, 3), 2));
  EXPECT_EQ(pool.used(), 3u);
  pool.release(held->blocks);
  EXPECT_FALSE(pool.allocate(hashes_of(1, 3), 2));  // its own hits are not evicted for it
  EXPECT_TRUE(pool.allocate(hashes_of(1, 2), 2));
}

// Cancelled requests free what they did not publish; no block is given out twice.
TEST(BlockPoolTest, RandomRequests) {
  PRNG prng(7);
  BlockPool pool(64);
  std::vector<std::pair<std::vector<u32>, u32>> held;  // blocks, reused
  std::map<u32, u64> owner;
  for (u64 step = 0; step < 20000; ++step) {
    if (prng.below(2) == 0 || held.empty()) {
      const auto got =
          pool.allocate(hashes_of(prng.below(30) * 10, static_cast<u32>(prng.below(9))),
                        static_cast<u32>(prng.below(4)));
      if (!got) continue;
      for (std::size_t i = 0; i < got->blocks.size(); ++i) {
        const bool is_new = owner.emplace(got->blocks[i], step).second;
        EXPECT_TRUE(is_new || i < got->reused);
      }
      if (prng.below(4) != 0) pool.publish(got->blocks);
      held.push_back({got->blocks, got->reused});
    } else {
      const std::size_t at = prng.below(held.size());
      pool.release(held[at].first);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
      std::map<u32, u64> still;
      for (const auto& [blocks, reused] : held)
        for (const u32 block : blocks) still[block] = step;
      owner = std::move(still);
    }
    EXPECT_EQ(pool.used(), owner.size());
    EXPECT_LE(pool.used() + pool.cached(), 64u);
  }
  EXPECT_GT(pool.evictions(), 0u);
}

}  // namespace
}  // namespace verbena::transfer
