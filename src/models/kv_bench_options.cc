#include "models/kv_bench_options.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "models/handles.h"

namespace verbena::models {
namespace {

constexpr u64 kMaxPoolBytes = u64{8} << 30;
constexpr u32 kSpareBlocks = 2;  // a pool has so many times the blocks of the requests

std::string model_names() {
  std::string names;
  for (const transfer::KVModel& model : transfer::kv_models())
    names += (names.empty() ? "" : ", ") + std::string(model.name);
  return names;
}

Expected<void> read_baselines(const std::string& text, KVBenchOptions& read) {
  read.has_contiguous = read.has_tcp = false;
  for (const std::string& name : split(text, ',')) {
    if (name == "contiguous")
      read.has_contiguous = true;
    else if (name == "tcp")
      read.has_tcp = true;
    else if (name != "none")
      return tl::unexpected("--baseline " + name + ": contiguous, tcp or none is needed");
  }
  return {};
}

}  // namespace

transfer::KVLayout KVBenchOptions::layout() const {
  transfer::KVLayout layout =
      transfer::KVLayout::of(model, tensor_parallel, block_tokens, kSpareBlocks * requests * blocks,
                             transfer::KVLayout::Order::kLayers);
  if (block_bytes != 0) layout.block_bytes = block_bytes;
  return layout;
}

Expected<KVBenchOptions> read_kv_bench_options(std::span<const std::string> arguments) {
  const auto options = Options::read(
      arguments, {.values = {"--model", "--tokens", "--block-tokens", "--block", "--blocks", "--tp",
                             "--requests", "--iterations", "--compute", "--baseline", "--layers"},
                  .flags = {"--json"}});
  if (!options) return tl::unexpected(options.error());
  if (!options->words().empty())
    return tl::unexpected("unexpected argument '" + options->words()[0] + "'");
  KVBenchOptions read;
  const std::string name = options->text("--model", "llama3-70b");
  const transfer::KVModel* const model = transfer::find_kv_model(name);
  if (model == nullptr) return tl::unexpected("--model " + name + ": there is " + model_names());
  read.model = *model;
  struct Number {
    const char* name;
    u32& value;
    u64 low, high;
  };
  u32 compute = 0, layers = model->layers;
  for (const Number& number : {Number{"--tokens", read.tokens, 1, 1 << 24},
                               {"--block-tokens", read.block_tokens, 1, 4096},
                               {"--tp", read.tensor_parallel, 1, 64},
                               {"--requests", read.requests, 1, 64},
                               {"--iterations", read.iterations, 1, 10000},
                               {"--blocks", read.blocks, 1, 1 << 20},
                               {"--compute", compute, 0, 10'000'000},
                               {"--layers", layers, 1, 1024}}) {
    const auto value = options->number(number.name, number.value, number.low, number.high);
    if (!value) return tl::unexpected(value.error());
    number.value = static_cast<u32>(*value);
  }
  if (!read.model.divides_by(read.tensor_parallel))
    return tl::unexpected(fmt::format("--tp {}: {} has {} KV heads, which do not divide by that",
                                      read.tensor_parallel, name, read.model.kv_heads));
  read.model.layers = layers;
  read.compute_us = compute;
  // --blocks counts all blocks of a request: they are one layer's, of K and V together.
  if (read.blocks != 0) {
    const u32 halves = read.model.is_latent ? 1 : 2;
    if (read.blocks % halves != 0) return tl::unexpected<std::string>("--blocks: K and V need two");
    read.model.layers = 1;
    read.blocks /= halves;
  } else {
    read.blocks = (read.tokens + read.block_tokens - 1) / read.block_tokens;
  }
  const auto block = options->number("--block", 0, 64, u64{1} << 30);
  if (!block) return tl::unexpected(block.error());
  read.block_bytes = *block;
  if (options->all("--baseline").size() == 1)
    if (const auto known = read_baselines(options->text("--baseline"), read); !known)
      return tl::unexpected(known.error());
  read.prints_json = options->has("--json");
  const char* const link = std::getenv("VERBENA_LINK");
  if (link == nullptr || *link == '\0')
    read.technologies = {KVTechnology::kRoCEv2, KVTechnology::kIWARP};
  else if (std::string(link) == "iwarp")
    read.technologies = {KVTechnology::kIWARP};
  else
    read.technologies = {KVTechnology::kRoCEv2};
  if (read.layout().bytes() > kMaxPoolBytes)
    return tl::unexpected("the caches would have " + size_text(read.layout().bytes()) +
                          " in each process: 8.0 GiB at most");
  return read;
}

}  // namespace verbena::models
