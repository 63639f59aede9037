#include "jobs/steps/transformer.h"

#include <array>

namespace verbena::jobs {
namespace {

constexpr std::array kTransformers = {
    Transformer{.name = "llama3_8b",
                .source = "Grattafiori et al., The Llama 3 Herd of Models, 2024, table 3"},
    Transformer{.name = "llama3_70b",
                .source = "Grattafiori et al., The Llama 3 Herd of Models, 2024, table 3",
                .layers = 80,
                .hidden = 8192,
                .feed_forward = 28672,
                .heads = 64},
    Transformer{.name = "llama3_405b",
                .source = "Grattafiori et al., The Llama 3 Herd of Models, 2024, table 3",
                .layers = 126,
                .hidden = 16384,
                .feed_forward = 53248,
                .heads = 128},
    Transformer{.name = "gpt3_175b",
                .source = "Brown et al., Language Models are Few-Shot Learners, 2020, table 2.1",
                .layers = 96,
                .hidden = 12288,
                .feed_forward = 49152,
                .heads = 96,
                .kv_heads = 96,
                .vocabulary = 50257,
                .gated = 0},
    Transformer{.name = "mixtral_8x7b",
                .source = "Jiang et al., Mixtral of Experts, 2024, table 1",
                .vocabulary = 32000,
                .experts = 8},
};

}  // namespace

u64 Transformer::attention_parameters() const {
  const u64 square = u64{hidden} * hidden;
  return 2 * square + 2 * square * kv_heads / heads;
}

u64 Transformer::mlp_parameters() const { return u64{gated + 2} * hidden * feed_forward; }

u64 Transformer::parameters() const {
  const u64 mlps = experts == 0 ? 1 : experts;
  return layers * (attention_parameters() + mlps * mlp_parameters()) + 2 * embedding_parameters();
}

double Transformer::attention_flops(u64 context) const {
  return 2 * static_cast<double>(attention_parameters()) +
         2 * static_cast<double>(hidden) * static_cast<double>(context);
}

double Transformer::mlp_flops() const {
  return 2 * static_cast<double>(mlp_parameters()) * (experts == 0 ? 1 : experts_per_token);
}

double Transformer::output_flops() const { return 2 * static_cast<double>(embedding_parameters()); }

u64 Transformer::cache_bytes() const { return 2 * 2 * u64{hidden} * kv_heads / heads; }

std::span<const Transformer> transformers() { return kTransformers; }

const Transformer* transformer_named(std::string_view name) {
  for (const Transformer& known : kTransformers)
    if (known.name == name) return &known;
  return nullptr;
}

}  // namespace verbena::jobs
