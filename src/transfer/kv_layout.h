// KVLayout: where a paged KV cache has its blocks, as the engines of LLM serving lay them out. A
// block holds the keys and values of `block_tokens` tokens of one layer.
//
//   kLayers    vLLM, FlashAttention:  each layer [2][blocks][tokens][heads][dim]: K, then V
//   kPairs     vLLM, FlashInfer:      each layer [blocks][2][tokens][heads][dim]: V follows its K
//   kSplit     SGLang:                all layers' K, then all layers' V:
//                                     [layers][blocks][tokens]...
//   kLatent    MLA (DeepSeek):        each layer [blocks][tokens][latent]: K and V are one
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "transfer/list.h"

namespace verbena::transfer {

struct KVModel {
  std::string_view name{};
  u32 layers = 0, kv_heads = 0, head_dim = 0;  // of a latent cache: heads 1, dim of the latent
  u32 element_bytes = 2;
  bool is_latent = false;
  double parameters = 0;  // of the whole model

  // Whether GPUs can share the KV heads: each has as many of them, or as many GPUs have each.
  [[nodiscard]] bool divides_by(u32 tensor_parallel) const {
    return is_latent || kv_heads % tensor_parallel == 0 || tensor_parallel % kv_heads == 0;
  }
};
// nullptr if there is no such model.
[[nodiscard]] const KVModel* find_kv_model(std::string_view name);
[[nodiscard]] std::span<const KVModel> kv_models();

struct KVLayout {
  enum class Order : u8 { kLayers, kPairs, kSplit, kLatent };
  Order order = Order::kLayers;
  u32 layers = 1, blocks = 1;
  u64 block_bytes = 0;  // of K alone, or of V

  // A rank's share of the model's heads; heads that do not divide are there more than once.
  [[nodiscard]] static KVLayout of(const KVModel& model, u32 tensor_parallel, u32 block_tokens,
                                   u32 blocks, Order order);
  [[nodiscard]] u32 halves() const { return order == Order::kLatent ? 1 : 2; }  // K and V
  [[nodiscard]] u64 bytes() const { return u64{layers} * blocks * halves() * block_bytes; }
  [[nodiscard]] u64 layer_bytes(u64 block_count) const {
    return block_count * halves() * block_bytes;
  }
  // Returns the offset from the begin of the cache.
  [[nodiscard]] u64 offset_of(u32 layer, u32 half, u32 block) const;
};

// The blocks of one layer as a list: all K, then all V. `base` and `region` are those of the cache.
[[nodiscard]] std::vector<Block> kv_list(const KVLayout& layout, u64 base, u32 region, u32 layer,
                                         std::span<const u32> blocks);

}  // namespace verbena::transfer
