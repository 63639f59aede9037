// Transformer: a language model in numbers, and the cost of its layers: bytes of parameters and
// activations, floating-point operations. Decoder-only, grouped-query attention, a gated or plain
// MLP, or experts in its place.
//
//   parameters of attention   2 h^2 + 2 h^2 kv_heads / heads   queries and output, keys and values
//   parameters of an MLP      m h f                            m = 3 with a gate (SwiGLU), else 2
//   forward, for a token      2 * parameters + 2 h s           2 s h of QK^T and of its product
//                                                              with V each, half by causality
// Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters Using
// Megatron-LM, SC 2021, appendix: there without causality, and with 2 h f + 2 h f = 16 h^2. The
// backward pass is twice the forward one.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "base/types.h"

namespace verbena::jobs {

// The bytes of a number in BF16.
inline constexpr u32 kActivationBytes = 2;
inline constexpr u32 kParameterBytes = 2;

struct Transformer {
  std::string_view name = "";
  std::string_view source = "";
  u32 layers = 32;
  u32 hidden = 4096;         // h
  u32 feed_forward = 14336;  // f
  u32 heads = 32;
  u32 kv_heads = 8;
  u32 vocabulary = 128256;
  u32 gated = 1;              // 1: with a gate
  u32 experts = 0;            // 0: one MLP for all tokens
  u32 experts_per_token = 2;  // where there are experts

  [[nodiscard]] u64 attention_parameters() const;  // of a layer
  [[nodiscard]] u64 mlp_parameters() const;        // of one MLP, or expert
  [[nodiscard]] u64 embedding_parameters() const { return u64{vocabulary} * hidden; }
  [[nodiscard]] u64 parameters() const;  // of all, input and output embeddings counted each
  // The operations of a layer for one token of a sequence that is `context` long.
  [[nodiscard]] double attention_flops(u64 context) const;
  [[nodiscard]] double mlp_flops() const;
  [[nodiscard]] double output_flops() const;  // to the vocabulary, for a token
  // The bytes of a layer for a token: keys and values of 2 bytes.
  [[nodiscard]] u64 cache_bytes() const;
};

// llama3_8b and others, with where their numbers come from.
[[nodiscard]] std::span<const Transformer> transformers();
// Returns nullptr if no model has that name.
[[nodiscard]] const Transformer* transformer_named(std::string_view name);

}  // namespace verbena::jobs
