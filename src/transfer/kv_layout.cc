#include "transfer/kv_layout.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace verbena::transfer {
namespace {

// From the models' published configurations.
constexpr std::array kKVModels = {
    KVModel{
        .name = "llama3-8b", .layers = 32, .kv_heads = 8, .head_dim = 128, .parameters = 8.03e9},
    KVModel{
        .name = "llama3-70b", .layers = 80, .kv_heads = 8, .head_dim = 128, .parameters = 70.6e9},
    KVModel{.name = "llama3-405b",
            .layers = 126,
            .kv_heads = 8,
            .head_dim = 128,
            .parameters = 405.9e9},
    KVModel{
        .name = "qwen2.5-72b", .layers = 80, .kv_heads = 8, .head_dim = 128, .parameters = 72.7e9},
    KVModel{.name = "deepseek-v3",
            .layers = 61,
            .kv_heads = 1,
            .head_dim = 576,
            .is_latent = true,
            .parameters = 671e9}};

}  // namespace

std::span<const KVModel> kv_models() { return kKVModels; }

const KVModel* find_kv_model(std::string_view name) {
  const auto found = std::ranges::find(kKVModels, name, &KVModel::name);
  return found == kKVModels.end() ? nullptr : &*found;
}

KVLayout KVLayout::of(const KVModel& model, u32 tensor_parallel, u32 block_tokens, u32 blocks,
                      Order order) {
  const u32 heads = std::max(1u, model.kv_heads / std::max(1u, tensor_parallel));
  return {.order = model.is_latent ? Order::kLatent : order,
          .layers = model.layers,
          .blocks = blocks,
          .block_bytes = u64{block_tokens} * heads * model.head_dim * model.element_bytes};
}

u64 KVLayout::offset_of(u32 layer, u32 half, u32 block) const {
  CHECK(layer < layers && half < halves() && block < blocks);
  u64 index = 0;
  switch (order) {
    case Order::kLayers: index = (u64{layer} * 2 + half) * blocks + block; break;
    case Order::kPairs: index = (u64{layer} * blocks + block) * 2 + half; break;
    case Order::kSplit: index = (u64{half} * layers + layer) * blocks + block; break;
    case Order::kLatent: index = u64{layer} * blocks + block; break;
  }
  return index * block_bytes;
}

std::vector<Block> kv_list(const KVLayout& layout, u64 base, u32 region, u32 layer,
                           std::span<const u32> blocks) {
  std::vector<Block> list;
  list.reserve(blocks.size() * layout.halves());
  for (u32 half = 0; half < layout.halves(); ++half)
    for (const u32 block : blocks)
      list.push_back({.address = base + layout.offset_of(layer, half, block),
                      .length = layout.block_bytes,
                      .region = region});
  return list;
}

}  // namespace verbena::transfer
