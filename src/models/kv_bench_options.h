// The options of `verbena bench kv`.
#pragma once

#include <string>
#include <vector>

#include "models/options.h"
#include "transfer/kv_layout.h"

namespace verbena::models {

enum class KVTechnology : u8 { kRoCEv2, kIWARP };

struct KVBenchOptions {
  transfer::KVModel model{};
  u32 tokens = 4096, block_tokens = 16, tensor_parallel = 8;
  u32 requests = 1, iterations = 10;
  u32 blocks = 0;         // of a request, in each layer
  u64 block_bytes = 0;    // of K or V of one block
  double compute_us = 0;  // of one layer
  bool has_contiguous = true, has_tcp = true, prints_json = false;
  std::vector<KVTechnology> technologies{};  // each in processes of its own

  [[nodiscard]] transfer::KVLayout layout() const;
  [[nodiscard]] u64 request_bytes() const { return model.layers * layout().layer_bytes(blocks); }
};

[[nodiscard]] Expected<KVBenchOptions> read_kv_bench_options(
    std::span<const std::string> arguments);

}  // namespace verbena::models
