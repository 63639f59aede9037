#include <poll.h>

#include <utility>

#include "models/handles.h"
#include "models/kv_movers.h"

namespace verbena::models {
namespace {

constexpr double kMoveSeconds = 60;

class AgentMover final : public KVMover {
 public:
  Expected<void> open(const KVBenchOptions& options, const KVCacheMemory& cache,
                      const KVPlace& decode) {
    auto agent = make_agent("prefill", {});
    if (!agent) return tl::unexpected(agent.error());
    agent_ = std::move(*agent);
    const auto region = add_region(agent_.get(), cache.data(), cache.octets(), 0);
    if (!region) return tl::unexpected(region.error());
    const auto met = meet(agent_.get(), decode.address.data());
    if (!met) return tl::unexpected(met.error());
    const transfer::KVLayout layout = options.layout();
    for (u32 layer = 0; layer <= layout.layers; ++layer) {
      const auto copies = kv_copies(options, layer, cache.base(), decode.base);
      std::vector<verbena_descriptor> local, remote;
      for (const transfer::Copy& copy : copies) {
        local.push_back({copy.local, copy.length, 0});
        remote.push_back({copy.remote, copy.length, 0});
      }
      auto prepared = prepare(*met, local, remote, layer + 1 >= layout.layers);
      if (!prepared) return tl::unexpected(prepared.error());
      layers_.push_back(std::move(*prepared));
    }
    return {};
  }
  Expected<void> start(u32 layer) override {
    if (verbena_transfer_post(layers_[layer].get()) != VERBENA_TRANSFER_OK)
      return tl::unexpected<std::string>(verbena_agent_error());
    started_.push_back(layer);
    return {};
  }
  void progress() override {
    if (!started_.empty()) (void)verbena_transfer_status(layers_[started_.back()].get());
  }
  Expected<void> finish() override {
    for (const u32 layer : std::exchange(started_, {}))
      if (const auto done = models::finish(layers_[layer], kMoveSeconds); !done) return done;
    return {};
  }

 private:
  Expected<TransferPtr> prepare(const std::string& peer,
                                const std::vector<verbena_descriptor>& local,
                                const std::vector<verbena_descriptor>& remote, bool notifies) {
    verbena_transfer_options options{};
    options.size = sizeof options;
    options.notification = notifies ? "done" : nullptr;
    options.notification_size = notifies ? 4 : 0;
    verbena_transfer* transfer = nullptr;
    if (verbena_transfer_create(agent_.get(), VERBENA_WRITE, local.data(), local.size(),
                                remote.data(), remote.size(), peer.c_str(), &options,
                                &transfer) != VERBENA_TRANSFER_OK)
      return tl::unexpected<std::string>(verbena_agent_error());
    return TransferPtr(transfer);
  }
  AgentPtr agent_{};
  std::vector<TransferPtr> layers_{};
  std::vector<u32> started_{};
};

class AgentSink final : public KVSink {
 public:
  Expected<void> open(const KVCacheMemory& cache) {
    auto agent = make_agent("decode", {});
    if (!agent) return tl::unexpected(agent.error());
    agent_ = std::move(*agent);
    base_ = cache.base();
    const auto region = add_region(agent_.get(), cache.data(), cache.octets(), 0);
    if (!region) return tl::unexpected(region.error());
    return {};
  }
  KVPlace place() const override {
    KVPlace place{.base = base_};
    const std::string address = verbena_agent_address(agent_.get());
    address.copy(place.address.data(), place.address.size() - 1);
    return place;
  }
  void wait(int control) override {
    pollfd readable{.fd = control, .events = POLLIN, .revents = 0};
    poll(&readable, 1, -1);
  }

 private:
  AgentPtr agent_{};
  u64 base_ = 0;
};

}  // namespace

std::vector<transfer::Copy> kv_copies(const KVBenchOptions& options, u32 layer, u64 from, u64 to) {
  const transfer::KVLayout layout = options.layout();
  if (layer == layout.layers)
    return {{.local = from, .remote = to, .length = options.requests * options.request_octets()}};
  const auto sources = block_tables(options, KVSide::kPrefill);
  const auto targets = block_tables(options, KVSide::kDecode);
  std::vector<transfer::Copy> all;
  for (u32 request = 0; request < options.requests; ++request) {
    const auto copies =
        transfer::pair_lists(transfer::kv_list(layout, from, 0, layer, sources[request]),
                             transfer::kv_list(layout, to, 0, layer, targets[request]));
    all.insert(all.end(), copies->begin(), copies->end());
  }
  return all;
}

Expected<std::unique_ptr<KVMover>> make_agent_mover(const KVBenchOptions& options,
                                                    const KVCacheMemory& cache,
                                                    const KVPlace& decode) {
  auto mover = std::make_unique<AgentMover>();
  if (const auto opened = mover->open(options, cache, decode); !opened)
    return tl::unexpected(opened.error());
  return mover;
}

Expected<std::unique_ptr<KVSink>> make_agent_sink(const KVCacheMemory& cache) {
  auto sink = std::make_unique<AgentSink>();
  if (const auto opened = sink->open(cache); !opened) return tl::unexpected(opened.error());
  return sink;
}

}  // namespace verbena::models
