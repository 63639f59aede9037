#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "base/prng.h"
#include "jobs/serving/serving_config.h"
#include "transfer/block_pool.h"

namespace verbena::jobs {
namespace {

using transfer::BlockPool;
using transfer::TracedRequest;

constexpr u32 kTraceBlock = transfer::RequestTrace::kBlockTokens;
constexpr u64 kUnnamed = u64{1} << 63;
constexpr double kMostSeconds = 30.0 * 86'400;  // Time reaches to 106 days

Duration seconds(double value) { return ps(static_cast<i64>(value * 1e12)); }

// IDs may be 64-bit hashes themselves, so no bit of them can make room for the part.
u64 mixed(u64 id, u64 part) { return PRNG(PRNG(id).next() + part).next(); }

// The trace's IDs name blocks of 512 tokens; the cache's blocks are parts of them. The hash of a
// block that the trace does not name is that of a number that no other block has.
std::vector<u64> block_hashes(const TracedRequest& request, u64 number, u32 block_tokens) {
  std::vector<u64> hashes;
  const u32 count = request.input_tokens / block_tokens;  // whole ones can be shared
  for (u32 block = 0; block < count; ++block) {
    const u64 token = u64{block} * block_tokens;
    const std::size_t id = token / kTraceBlock;
    const u64 part = token % kTraceBlock / block_tokens;
    const bool is_named = id < request.blocks.size();
    hashes.push_back(is_named ? mixed(request.blocks[id], part)
                              : mixed(kUnnamed | number << 24 | block, 0));
  }
  return hashes;
}

// The contents stay cached until they are evicted.
std::optional<BlockPool::Allocation> pass_through(BlockPool& pool, std::span<const u64> hashes,
                                                  u32 more) {
  auto allocation = pool.allocate(hashes, more);
  if (!allocation) return std::nullopt;
  pool.publish(allocation->blocks);
  pool.release(allocation->blocks);
  return allocation;
}

struct CachePools {
  std::vector<std::unique_ptr<BlockPool>> prefill{}, decode{};
  std::vector<Time> free_at{};
  std::vector<u32> load{};
};

u64 evictions_of(const std::vector<std::unique_ptr<BlockPool>>& pools) {
  u64 total = 0;
  for (const auto& pool : pools) total += pool->evictions();
  return total;
}

u32 index_of_least(const auto& values) {
  return static_cast<u32>(std::ranges::min_element(values) - values.begin());
}

}  // namespace

transfer::KVLayout cache_layout(const ServingConfig& config) {
  return transfer::KVLayout::of(config.model, config.gpus, config.block_tokens,
                                static_cast<u32>(config.cache_tokens / config.block_tokens),
                                transfer::KVLayout::Order::kLayers);
}

Duration decode_step(const ServingConfig& config) {
  return seconds(config.model.parameters * config.model.element_bytes /
                 (config.gpus * config.memory_rate));
}

ServingPlan plan_serving(const ServingConfig& config, std::string* mistake) {
  const u32 blocks = cache_layout(config).blocks;
  CachePools pools;
  for (u32 i = 0; i < config.prefill; ++i)
    pools.prefill.push_back(std::make_unique<BlockPool>(blocks));
  for (u32 i = 0; i < config.decode; ++i)
    pools.decode.push_back(std::make_unique<BlockPool>(blocks));
  pools.free_at.resize(config.prefill);
  pools.load.resize(config.decode);
  ServingPlan plan;
  for (u64 number = 0; number < config.trace.requests.size(); ++number) {
    const TracedRequest& traced = config.trace.requests[number];
    if (static_cast<double>(traced.arrival_ms) > kMostSeconds * 1e3) {
      *mistake = "the trace is longer than 30 days";
      return plan;
    }
    PlannedRequest request{.prefill = index_of_least(pools.free_at),
                           .decode = index_of_least(pools.load),
                           .arrival = Time() + ms(static_cast<i64>(traced.arrival_ms))};
    const std::vector<u64> hashes = block_hashes(traced, number, config.block_tokens);
    const u32 more = traced.input_tokens % config.block_tokens != 0 ? 1 : 0;
    const auto from = pass_through(*pools.prefill[request.prefill], hashes, more);
    const auto to = pass_through(*pools.decode[request.decode], hashes, more);
    if (!from || !to) {
      *mistake = fmt::format("a request of {} tokens does not fit into a cache of {}",
                             traced.input_tokens, config.cache_tokens);
      return plan;
    }
    // One token at least is computed, or there is no first one.
    const u32 reused = std::min(from->reused * config.block_tokens, traced.input_tokens - 1);
    request.computed_tokens = traced.input_tokens - reused;
    request.shared_blocks = to->reused;
    request.from.assign(from->blocks.begin() + to->reused, from->blocks.end());
    request.to.assign(to->blocks.begin() + to->reused, to->blocks.end());
    request.begin = std::max(request.arrival, pools.free_at[request.prefill]);
    const double prefill_s = 2 * config.model.parameters * request.computed_tokens /
                             (config.gpus * config.prefill_flops);
    if ((request.begin - Time()).seconds() + prefill_s > kMostSeconds) {
      *mistake = "the requests take longer than 30 days";
      return plan;
    }
    request.end = request.begin + seconds(prefill_s);
    pools.free_at[request.prefill] = request.end;
    ++pools.load[request.decode];
    plan.computed_tokens += request.computed_tokens;
    plan.reused_tokens += reused;
    plan.requests.push_back(std::move(request));
  }
  plan.evictions = evictions_of(pools.prefill) + evictions_of(pools.decode);
  return plan;
}

}  // namespace verbena::jobs
