// KV caches of two agents: shared prefixes, eviction, transfers layer by layer, to several peers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <verbena/kv_cache.h>

#include "tests/transfer/agents.h"

namespace verbena::transfer_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Table = std::vector<uint32_t>;

constexpr uint32_t kLayers = 3, kBlocks = 8;
constexpr uint64_t kBlockBytes = 4096;

struct CacheDeleter {
  void operator()(verbena_kv_cache* cache) const { verbena_kv_cache_destroy(cache); }
};

struct Instance {
  verbena_kv_layout layout{};
  AgentPtr agent{};
  std::vector<unsigned char> memory{};
  std::unique_ptr<verbena_kv_cache, CacheDeleter> cache{};
  verbena_kv_place place{};

  Instance(const std::string& name, verbena_kv_order order, unsigned seed)
      : layout{.order = order, .layers = kLayers, .blocks = kBlocks, .block_bytes = kBlockBytes},
        agent(make_agent(name)),
        memory(pattern(2 * kLayers * kBlocks * kBlockBytes, seed)) {
    verbena_kv_cache* made = nullptr;
    EXPECT_EQ(verbena_kv_cache_create(&made, agent.get(), &layout, memory.data()),
              VERBENA_TRANSFER_OK)
        << verbena_agent_error();
    cache.reset(made);
    EXPECT_EQ(verbena_kv_cache_place(made, &place), VERBENA_TRANSFER_OK);
  }
  // Empty: there is no room.
  Table allocate(const std::vector<uint64_t>& hashes, size_t more, size_t* reused = nullptr) {
    Table table(hashes.size() + more);
    const int status =
        verbena_kv_allocate(cache.get(), hashes.data(), hashes.size(), more, table.data(), reused);
    return status == VERBENA_TRANSFER_OK ? table : Table{};
  }
  int publish(const Table& table) {
    return verbena_kv_publish(cache.get(), table.data(), table.size());
  }
  int release(const Table& table) {
    return verbena_kv_release(cache.get(), table.data(), table.size());
  }
  verbena_kv_counters count() {
    verbena_kv_counters counters{};
    counters.size = sizeof counters;
    EXPECT_EQ(verbena_kv_count(cache.get(), &counters), VERBENA_TRANSFER_OK);
    return counters;
  }
  // K and V of the blocks in one layer.
  std::vector<unsigned char> bytes(uint32_t layer, const Table& table) {
    std::vector<verbena_descriptor> list(2 * table.size());
    EXPECT_EQ(
        verbena_kv_list(&layout, place.base, 0, layer, table.data(), table.size(), list.data()),
        list.size());
    std::vector<unsigned char> all;
    for (const verbena_descriptor& block : list) {
      const auto* const at = reinterpret_cast<const unsigned char*>(block.address);
      all.insert(all.end(), at, at + block.length);
    }
    return all;
  }
};

TransferPtr move_blocks(Instance& from, const Table& table, const Instance& to,
                        const Table& to_table, const char* notification = nullptr) {
  verbena_transfer_options options{};
  options.size = sizeof options;
  options.notification = notification;
  options.notification_size = notification == nullptr ? 0 : strlen(notification);
  verbena_transfer* transfer = nullptr;
  EXPECT_EQ(verbena_kv_transfer_create(from.cache.get(), VERBENA_WRITE, table.data(), table.size(),
                                       &to.place, to_table.data(),
                                       verbena_agent_name(to.agent.get()), &options, &transfer),
            VERBENA_TRANSFER_OK)
      << verbena_agent_error();
  return TransferPtr(transfer);
}

bool is_notified(Instance& instance, double seconds) {
  char text[VERBENA_NOTIFICATION_MAX];
  size_t size = sizeof text;
  return verbena_agent_next_notification(instance.agent.get(), nullptr, seconds, nullptr, 0, text,
                                         &size) == VERBENA_TRANSFER_OK;
}

class KVCaches : public testing::Test {
 protected:
  void SetUp() override { use_devices({.address = "127.41.3.1"}); }
};

TEST_F(KVCaches, MoveLayerByLayerBetweenLayouts) {
  Instance prefill("prefill", VERBENA_KV_LAYERS, 1), decode("decode", VERBENA_KV_SPLIT, 2);
  meet(prefill.agent.get(), verbena_agent_address(decode.agent.get()));
  const Table from = prefill.allocate({11, 12, 13}, 1), padding = decode.allocate({}, 2);
  const Table to = decode.allocate({11, 12, 13}, 1);
  const auto untouched = decode.bytes(1, padding);
  const auto transfer = move_blocks(prefill, from, decode, to, "request 7");
  ASSERT_EQ(verbena_transfer_post(transfer.get()), VERBENA_TRANSFER_OK) << verbena_agent_error();
  ASSERT_EQ(verbena_kv_layers_ready(transfer.get(), 1), VERBENA_TRANSFER_OK);
  for (int i = 0; i < 2000 && decode.bytes(0, to) != prefill.bytes(0, from); ++i)
    EXPECT_EQ(verbena_transfer_wait(transfer.get(), 0.005), VERBENA_TRANSFER_IN_PROGRESS);
  EXPECT_TRUE(decode.bytes(0, to) == prefill.bytes(0, from));
  EXPECT_FALSE(decode.bytes(1, to) == prefill.bytes(1, from));
  EXPECT_FALSE(is_notified(decode, 0));
  ASSERT_EQ(verbena_kv_layers_ready(transfer.get(), kLayers), VERBENA_TRANSFER_OK);
  ASSERT_EQ(verbena_transfer_wait(transfer.get(), 30), VERBENA_TRANSFER_OK);
  EXPECT_TRUE(is_notified(decode, 10));
  for (uint32_t layer = 0; layer < kLayers; ++layer)
    EXPECT_TRUE(decode.bytes(layer, to) == prefill.bytes(layer, from)) << layer;
  EXPECT_TRUE(decode.bytes(1, padding) == untouched);
}

TEST_F(KVCaches, OnePrefixGoesToMany) {
  Instance prefill("prefill", VERBENA_KV_PAIRS, 1);
  Instance one("one", VERBENA_KV_PAIRS, 2), two("two", VERBENA_KV_LAYERS, 3);
  const Table from = prefill.allocate({1, 2, 3, 4}, 0);
  std::vector<TransferPtr> transfers;
  for (Instance* const decode : {&one, &two}) {
    meet(prefill.agent.get(), verbena_agent_address(decode->agent.get()));
    transfers.push_back(move_blocks(prefill, from, *decode, decode->allocate({1, 2, 3, 4}, 0)));
    ASSERT_EQ(verbena_transfer_post(transfers.back().get()), VERBENA_TRANSFER_OK);
    ASSERT_EQ(verbena_kv_layers_ready(transfers.back().get(), kLayers), VERBENA_TRANSFER_OK);
  }
  for (const auto& transfer : transfers)
    ASSERT_EQ(verbena_transfer_wait(transfer.get(), 30), VERBENA_TRANSFER_OK);
  EXPECT_TRUE(one.bytes(2, {0, 1, 2, 3}) == prefill.bytes(2, from));
  EXPECT_TRUE(two.bytes(2, {0, 1, 2, 3}) == prefill.bytes(2, from));
}

TEST_F(KVCaches, RequestsShareAndEvictBlocks) {
  Instance instance("a", VERBENA_KV_LAYERS, 1);
  const Table first = instance.allocate({1, 2, 3}, 2);
  EXPECT_THAT(first, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(instance.publish(first), VERBENA_TRANSFER_OK);
  size_t reused = 0;
  const Table second = instance.allocate({1, 2, 9}, 0, &reused);
  EXPECT_EQ(reused, 2u);
  EXPECT_THAT(second, ElementsAre(0, 1, 5));
  EXPECT_THAT(instance.allocate({}, 3), ElementsAre());  // two are free
  EXPECT_EQ(instance.release(first), VERBENA_TRANSFER_OK);
  EXPECT_EQ(instance.count().used, 3u);
  EXPECT_EQ(instance.count().cached, 1u);  // that with the hash 3
  EXPECT_EQ(instance.allocate({}, 5).size(), 5u);
  EXPECT_EQ(instance.count().evictions, 1u);
  instance.allocate({1, 2, 3}, 0, &reused);
  EXPECT_THAT(verbena_agent_error(), HasSubstr("8 of 8 blocks are in use"));
}

// A hash that a prompt repeats counts for one block.
TEST_F(KVCaches, RepeatedHashesDoNotCountTwice) {
  Instance instance("a", VERBENA_KV_LAYERS, 1);
  const Table all = instance.allocate({1}, kBlocks - 1);
  EXPECT_EQ(instance.publish(all), VERBENA_TRANSFER_OK);
  const Table rest(all.begin() + 1, all.end());
  EXPECT_EQ(instance.release({all[0]}), VERBENA_TRANSFER_OK);
  EXPECT_THAT(instance.allocate({1, 1, 2}, 0), ElementsAre());  // nothing is left for 2
  EXPECT_EQ(instance.release(rest), VERBENA_TRANSFER_OK);
}

TEST_F(KVCaches, ATransferKeepsItsBlocks) {
  Instance prefill("prefill", VERBENA_KV_LAYERS, 1), decode("decode", VERBENA_KV_LAYERS, 2);
  meet(prefill.agent.get(), verbena_agent_address(decode.agent.get()));
  const Table from = prefill.allocate({}, 5);
  auto transfer = move_blocks(prefill, from, decode, decode.allocate({}, 5));
  ASSERT_EQ(verbena_transfer_post(transfer.get()), VERBENA_TRANSFER_OK);
  EXPECT_EQ(prefill.release(from), VERBENA_TRANSFER_OK);
  EXPECT_EQ(prefill.count().used, 5u);
  EXPECT_EQ(prefill.allocate({}, 4).size(), 0u);
  EXPECT_EQ(verbena_transfer_cancel(transfer.get()), VERBENA_TRANSFER_OK);
  EXPECT_EQ(verbena_transfer_wait(transfer.get(), 30), VERBENA_TRANSFER_CANCELLED);
  EXPECT_EQ(verbena_kv_layers_ready(transfer.get(), 1), VERBENA_TRANSFER_CANCELLED);
  transfer.reset();
  EXPECT_EQ(prefill.count().used, 0u);
}

TEST_F(KVCaches, RefuseWrongArguments) {
  Instance prefill("prefill", VERBENA_KV_LAYERS, 1), decode("decode", VERBENA_KV_LAYERS, 2);
  meet(prefill.agent.get(), verbena_agent_address(decode.agent.get()));
  const Table from = prefill.allocate({1}, 1);
  EXPECT_EQ(prefill.release({from[0], from[0]}), VERBENA_TRANSFER_INVALID);
  EXPECT_EQ(prefill.release({99}), VERBENA_TRANSFER_INVALID);
  EXPECT_EQ(prefill.publish({7}), VERBENA_TRANSFER_INVALID);
  EXPECT_EQ(prefill.count().used, 2u);
  const auto create = [&](const verbena_kv_place& place, const Table& here, const Table& there) {
    verbena_transfer* transfer = nullptr;
    const int status =
        verbena_kv_transfer_create(prefill.cache.get(), VERBENA_WRITE, here.data(), here.size(),
                                   &place, there.data(), "decode", nullptr, &transfer);
    verbena_transfer_release(transfer);
    return status == VERBENA_TRANSFER_OK ? "" : std::string(verbena_agent_error());
  };
  EXPECT_EQ(create(decode.place, {0}, {0}), "");
  EXPECT_THAT(create(decode.place, {5}, {0}), HasSubstr("no request has the block 5"));
  EXPECT_THAT(create(decode.place, {0}, {8}), HasSubstr("no such block"));
  verbena_kv_place other = decode.place;
  other.layout.layers = 4;
  EXPECT_THAT(create(other, {0}, {0}), HasSubstr("number of layers"));
  other = decode.place;
  other.layout.order = VERBENA_KV_LATENT;
  EXPECT_THAT(create(other, {0}, {0}), HasSubstr("K and V in one"));
  other = decode.place;
  other.base += decode.memory.size();
  EXPECT_THAT(create(other, {0}, {0}), HasSubstr("not in a registered region"));
}

}  // namespace
}  // namespace verbena::transfer_test
