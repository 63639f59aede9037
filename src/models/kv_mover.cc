#include "models/kv_mover.h"

#include <array>
#include <utility>

#include "base/check.h"

namespace verbena::models {
namespace {

constexpr double kMoveSeconds = 60, kMeetSeconds = 10;

tl::unexpected<std::string> agent_failure() {
  return tl::unexpected<std::string>(verbena_agent_error());
}

verbena_transfer_options notifying() {
  verbena_transfer_options options{};
  options.size = sizeof options;
  options.notification = "done";
  options.notification_size = 4;
  return options;
}

// Frees all blocks in such an order that the next requests get these tables: a cache takes the
// block first that was freed last.
Expected<void> scatter(verbena_kv_cache* cache, const std::vector<std::vector<u32>>& tables,
                       u32 blocks) {
  std::vector<u32> all(blocks), order;
  if (verbena_kv_allocate(cache, nullptr, 0, blocks, all.data(), nullptr) != VERBENA_TRANSFER_OK)
    return agent_failure();
  std::vector<bool> is_wanted(blocks);
  std::vector<u32> wanted;
  for (const std::vector<u32>& table : tables)
    for (const u32 block : table) {
      wanted.push_back(block);
      is_wanted[block] = true;
    }
  for (const u32 block : all)
    if (!is_wanted[block]) order.push_back(block);
  order.insert(order.end(), wanted.rbegin(), wanted.rend());
  if (verbena_kv_release(cache, order.data(), order.size()) != VERBENA_TRANSFER_OK)
    return agent_failure();
  return {};
}

}  // namespace

Expected<void> KVInstance::open(const char* name, const KVBenchOptions& options,
                                const KVCacheMemory& memory) {
  auto agent = make_agent(name, {});
  if (!agent) return tl::unexpected(agent.error());
  agent_ = std::move(*agent);
  const transfer::KVLayout layout = options.layout();
  const verbena_kv_layout shape{.order = static_cast<verbena_kv_order>(layout.order),
                                .layers = layout.layers,
                                .blocks = layout.blocks,
                                .block_bytes = layout.block_bytes};
  verbena_kv_cache* cache = nullptr;
  if (verbena_kv_cache_create(&cache, agent_.get(), &shape, memory.data()) != VERBENA_TRANSFER_OK)
    return agent_failure();
  cache_.reset(cache);
  return {};
}

KVPlace KVInstance::place() const {
  KVPlace place;
  const std::string address = verbena_agent_address(agent_.get());
  address.copy(place.address.data(), place.address.size() - 1);
  verbena_kv_cache_place(cache_.get(), &place.cache);
  return place;
}

Expected<void> KVMover::open(const KVBenchOptions& options, const KVCacheMemory& memory,
                             const KVPlace& decode) {
  if (const auto opened = instance_.open("prefill", options, memory); !opened) return opened;
  auto met = meet(instance_.agent(), decode.address.data(), kMeetSeconds);
  if (!met) return tl::unexpected(met.error());
  peer_ = std::move(*met);
  if (const auto prepared = prepare_requests(options, decode); !prepared) return prepared;
  return prepare_contiguous(options, decode);
}

Expected<void> KVMover::prepare_requests(const KVBenchOptions& options, const KVPlace& decode) {
  const auto sources = block_tables(options, KVSide::kPrefill);
  const auto targets = block_tables(options, KVSide::kDecode);
  if (const auto done = scatter(instance_.cache(), sources, options.layout().blocks); !done)
    return done;
  const verbena_transfer_options wanted = notifying();
  for (u32 request = 0; request < options.requests; ++request) {
    std::vector<u32> table(options.blocks);
    if (verbena_kv_allocate(instance_.cache(), nullptr, 0, table.size(), table.data(), nullptr) !=
        VERBENA_TRANSFER_OK)
      return agent_failure();
    CHECK(table == sources[request]);
    verbena_transfer* transfer = nullptr;
    if (verbena_kv_transfer_create(instance_.cache(), VERBENA_WRITE, table.data(), table.size(),
                                   &decode.cache, targets[request].data(), peer_.c_str(), &wanted,
                                   &transfer) != VERBENA_TRANSFER_OK)
      return agent_failure();
    requests_.emplace_back(transfer);
  }
  return {};
}

Expected<void> KVMover::prepare_contiguous(const KVBenchOptions& options, const KVPlace& decode) {
  const u64 bytes = options.requests * options.request_bytes();
  verbena_kv_place here{};
  verbena_kv_cache_place(instance_.cache(), &here);
  const verbena_descriptor local{here.base, bytes, here.region};
  const verbena_descriptor remote{decode.cache.base, bytes, decode.cache.region};
  const verbena_transfer_options wanted = notifying();
  verbena_transfer* transfer = nullptr;
  if (verbena_transfer_create(instance_.agent(), VERBENA_WRITE, &local, 1, &remote, 1,
                              peer_.c_str(), &wanted, &transfer) != VERBENA_TRANSFER_OK)
    return agent_failure();
  contiguous_.reset(transfer);
  return {};
}

Expected<void> KVMover::post(const TransferPtr& transfer) {
  if (verbena_transfer_post(transfer.get()) != VERBENA_TRANSFER_OK) return agent_failure();
  started_.push_back(&transfer);
  return {};
}

Expected<void> KVMover::start(u32 layer) {
  for (const TransferPtr& request : requests_) {
    if (layer == 0)
      if (const auto posted = post(request); !posted) return posted;
    if (verbena_kv_layers_ready(request.get(), layer + 1) != VERBENA_TRANSFER_OK)
      return agent_failure();
  }
  return {};
}

Expected<void> KVMover::start_contiguous() { return post(contiguous_); }

void KVMover::progress() {
  if (!started_.empty()) (void)verbena_transfer_status(started_.back()->get());
}

Expected<void> KVMover::finish() {
  for (const TransferPtr* const transfer : std::exchange(started_, {}))
    if (const auto done = models::finish(*transfer, kMoveSeconds); !done) return done;
  return {};
}

}  // namespace verbena::models
