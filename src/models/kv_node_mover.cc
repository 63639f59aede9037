#include <poll.h>
#include <sys/socket.h>

#include <charconv>

#include "base/bytes.h"
#include "models/handles.h"
#include "models/kv_movers.h"
#include "transfer/node_flow.h"
#include "verbs/live_node.h"

namespace verbena::models {
namespace {

using application::Access;
using application::Address;
using application::Event;
using transfer::NodeFlow;
using verbs::LiveNode;

constexpr u32 kToldOctets = 12;  // the cache's address and R_Key
constexpr u32 kSinkReceives = 16;
constexpr Duration kNodePatience = sec(60), kNodeWait = ms(1);

bool is_readable(int fd) {
  pollfd readable{.fd = fd, .events = POLLIN, .revents = 0};
  return poll(&readable, 1, 0) > 0;
}

Expected<Address> read_address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  u16 port = 0;
  const auto ip = GID::parse(text.substr(0, colon));
  if (!ip || colon == std::string::npos ||
      std::from_chars(text.data() + colon + 1, text.data() + text.size(), port).ec != std::errc{})
    return tl::unexpected(text + " is no address of a device");
  return Address{*ip, port};
}

// Of the device that an agent would use, and a port that is free there.
Expected<std::string> own_address() {
  const auto agent = make_agent("probe", {});
  if (!agent) return tl::unexpected(agent.error());
  return std::string(verbena_agent_address(agent->get()));
}

class NodeMover final : public KVMover {
 public:
  Expected<void> open(const KVBenchOptions& options, const KVCacheMemory& cache,
                      const KVPlace& decode, int control) {
    control_ = control;
    const auto address = read_address(decode.address.data());
    if (!address) return tl::unexpected(address.error());
    auto node = LiveNode::open_towards(*address);
    if (!node) return tl::unexpected(node.error());
    node_ = std::move(*node);
    const auto region = node_->register_bytes({cache.data(), cache.octets()}, Access::kLocal);
    if (!region) return tl::unexpected<std::string>("the cache cannot be registered");
    flow_ = std::make_unique<NodeFlow>(
        *node_, transfer::FlowLimits{.transfers = 4096, .requests_per_lane = 64});
    (void)flow_->add_local_region(region->l_key);
    if (!node_->connect(*address, {.sends = 128, .receives = 1}, {}))
      return tl::unexpected<std::string>("no connection to the decode process");
    const Time limit = node_->now() + kNodePatience;
    while (!is_connected_ && failure_.empty() && node_->now() < limit) {
      node_->wait(kNodeWait);
      progress();
    }
    if (!is_connected_)
      return tl::unexpected(failure_.empty() ? "no connection to the decode process" : failure_);
    for (u32 layer = 0; layer <= options.layout().layers; ++layer)
      copies_.push_back(kv_copies(options, layer, cache.base(), decode.base));
    return {};
  }
  Expected<void> start(u32 layer) override {
    const bool notifies = layer + 2 >= copies_.size();
    auto started = flow_->start({.id = next_++,
                                 .operation = transfer::Operation::kWrite,
                                 .copies = copies_[layer],
                                 .notifies = notifies},
                                layer);
    if (started) flow_->pump();
    return started;
  }
  void progress() override {
    for (Event event; node_->poll(event);) {
      if (event.kind == Event::Kind::kConnected) {
        const Reader<kToldOctets> in(event.private_data.first<kToldOctets>());
        (void)flow_->add_remote_region(in.get32<8>());
        flow_->add_lane(event.connection);
        is_connected_ = true;
      } else if (event.kind == Event::Kind::kClosed || event.kind == Event::Kind::kRefused) {
        failure_ = "the connection to the decode process was closed";
      } else {
        (void)flow_->on_event(event);
      }
    }
    flow_->pump();
    while (flow_->poll_outcome()) {
    }
  }
  Expected<void> finish() override {
    const Time limit = node_->now() + kNodePatience;
    while (!flow_->flow().is_idle() && failure_.empty() && node_->now() < limit) {
      node_->spin();
      progress();
    }
    u8 answer = 0;
    if (!failure_.empty()) return tl::unexpected(failure_);
    if (recv(control_, &answer, 1, 0) != 1)
      return tl::unexpected<std::string>("the decode process died");
    return {};
  }

 private:
  std::unique_ptr<LiveNode> node_{};
  std::unique_ptr<NodeFlow> flow_{};
  std::vector<std::vector<transfer::Copy>> copies_{};
  int control_ = -1;
  u32 next_ = 0;
  bool is_connected_ = false;
  std::string failure_{};
};

class NodeSink final : public KVSink {
 public:
  Expected<void> open(const KVCacheMemory& cache, int control) {
    control_ = control;
    const auto text = own_address();
    if (!text) return tl::unexpected(text.error());
    const auto address = read_address(*text);
    if (!address) return tl::unexpected(address.error());
    auto node = LiveNode::open_local({address->ip, 0});
    if (!node) return tl::unexpected(node.error());
    node_ = std::move(*node);
    const auto region = node_->register_bytes({cache.data(), cache.octets()}, Access::kRemoteWrite);
    const auto inbox = node_->allocate(kSinkReceives * NodeFlow::kTagOctets,
                                       application::Content::kBytes, Access::kLocal);
    if (!region || !inbox) return tl::unexpected<std::string>("the cache cannot be registered");
    region_ = *region;
    inbox_ = *inbox;
    if (node_->listen(*address, {.sends = 1, .receives = kSinkReceives}) != Status::kOk)
      return tl::unexpected("cannot listen on " + *text);
    text->copy(place_.address.data(), place_.address.size() - 1);
    place_.base = cache.base();
    return {};
  }
  KVPlace place() const override { return place_; }
  void wait(int control) override {
    while (!is_readable(control)) {
      node_->wait(kNodeWait, std::span(&control, 1));
      for (Event event; node_->poll(event);) on_event(event);
    }
  }

 private:
  void post_receive(application::ConnectionId connection, u32 slot) {
    node_->post_receive(
        connection, slot,
        {inbox_.address + u64{slot} * NodeFlow::kTagOctets, NodeFlow::kTagOctets, inbox_.l_key});
  }
  void on_event(const Event& event) {
    if (event.kind == Event::Kind::kReceived) {
      post_receive(event.connection, event.id);
      const u8 came = 1;
      (void)!send(control_, &came, 1, MSG_NOSIGNAL);
    }
    if (event.kind != Event::Kind::kConnectRequest) return;
    for (u32 slot = 0; slot < kSinkReceives; ++slot) post_receive(event.connection, slot);
    std::array<u8, kToldOctets> told{};
    Writer<kToldOctets> out(told);
    out.put64<0>(region_.address);
    out.put32<8>(region_.r_key);
    node_->accept(event.connection, told);
  }
  std::unique_ptr<LiveNode> node_{};
  application::Region region_{}, inbox_{};
  KVPlace place_{};
  int control_ = -1;
};

}  // namespace

Expected<std::unique_ptr<KVMover>> make_node_mover(const KVBenchOptions& options,
                                                   const KVCacheMemory& cache,
                                                   const KVPlace& decode, int control) {
  auto mover = std::make_unique<NodeMover>();
  if (const auto opened = mover->open(options, cache, decode, control); !opened)
    return tl::unexpected(opened.error());
  return mover;
}

Expected<std::unique_ptr<KVSink>> make_node_sink(const KVCacheMemory& cache, int control) {
  auto sink = std::make_unique<NodeSink>();
  if (const auto opened = sink->open(cache, control); !opened)
    return tl::unexpected(opened.error());
  return sink;
}

Expected<std::unique_ptr<KVMover>> make_mover(KVTechnology technology,
                                              const KVBenchOptions& options,
                                              const KVCacheMemory& cache, const KVPlace& decode,
                                              int control) {
  switch (technology) {
    case KVTechnology::kRoCEv2: return make_agent_mover(options, cache, decode);
    case KVTechnology::kIWARP: return make_node_mover(options, cache, decode, control);
  }
  return tl::unexpected<std::string>("there is no such technology");
}

Expected<std::unique_ptr<KVSink>> make_sink(KVTechnology technology, const KVCacheMemory& cache,
                                            int control) {
  switch (technology) {
    case KVTechnology::kRoCEv2: return make_agent_sink(cache);
    case KVTechnology::kIWARP: return make_node_sink(cache, control);
  }
  return tl::unexpected<std::string>("there is no such technology");
}

}  // namespace verbena::models
