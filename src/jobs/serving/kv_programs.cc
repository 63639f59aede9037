#include "jobs/serving/kv_programs.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/check.h"

namespace verbena::jobs {
namespace {

using application::Access;
using application::Content;
using application::Event;

constexpr u32 kPrivateBytes = 12;  // the cache's address and R_Key

application::Region allocate(application::Node& node, u64 bytes, Content content, Access access) {
  const auto region = node.allocate(bytes, content, access);
  CHECK(region.has_value());
  return *region;
}

transfer::FlowLimits limits_of_flow() {
  return {.transfers = 1u << 20, .copies = u64{1} << 32, .requests_per_lane = 64};
}

}  // namespace

KVSender::KVSender(application::Node& node, Config config)
    : node_(node),
      config_(std::move(config)),
      cache_(allocate(node, config_.layout.bytes(), Content::kCounted, Access::kLocal)) {
  for (const application::Address& address : config_.peers) {
    const auto connection = node.connect(address, {.sends = 128, .receives = 1}, {});
    if (!connection) {
      mistake_ = "there is no path between two instances";
      continue;
    }
    Peer& peer = peers_.emplace_back();
    peer.connection = *connection;
    peer.flow = std::make_unique<transfer::NodeFlow>(node, limits_of_flow());
    CHECK(peer.flow->add_local_region(cache_.l_key) == 0);
  }
  const u32 layers = config_.layout.layers;
  for (u32 send = 0; send < config_.sends.size(); ++send) {
    const KVSend& each = config_.sends[send];
    const Duration whole = each.end - each.begin;
    for (u32 layer = 0; layer < layers; ++layer)
      due_.push_back({.at = config_.by_layer ? each.begin + whole / layers * (layer + 1) : each.end,
                      .send = send,
                      .layer = layer});
  }
  std::ranges::stable_sort(due_, {}, &Due::at);
}

bool KVSender::is_connected() const {
  return std::ranges::all_of(peers_, [](const Peer& peer) { return peer.is_connected; });
}

void KVSender::on_ready() {
  for (Event event; node_.poll(event);) on_event(event);
  if (!is_connected()) return;
  start_due();
  for (Peer& peer : peers_) {
    peer.flow->pump();
    while (const auto outcome = peer.flow->poll_outcome())
      if (outcome->result == transfer::Result::kFailed) mistake_ = outcome->why;
  }
}

void KVSender::on_event(const Event& event) {
  for (Peer& peer : peers_) {
    if (peer.connection != event.connection) continue;
    if (event.kind == Event::Kind::kConnected && event.private_data.size() >= kPrivateBytes) {
      const Reader<kPrivateBytes> in(event.private_data.first<kPrivateBytes>());
      peer.base = in.get64<0>();
      CHECK(peer.flow->add_remote_region(in.get32<8>()) == 0);
      peer.flow->add_lane(event.connection);
      peer.is_connected = true;
    } else {
      (void)peer.flow->on_event(event);
    }
  }
}

void KVSender::start_due() {
  while (next_due_ < due_.size() && due_[next_due_].at <= node_.now()) start(due_[next_due_++]);
  if (next_due_ < due_.size()) node_.set_alarm(due_[next_due_].at);
}

void KVSender::start(const Due& due) {
  const KVSend& send = config_.sends[due.send];
  Peer& peer = peers_[send.decode];
  const auto copies = transfer::pair_lists(
      transfer::kv_list(config_.layout, cache_.address, 0, due.layer, send.from),
      transfer::kv_list(config_.layout, peer.base, 0, due.layer, send.to));
  CHECK(copies.has_value());
  const auto started = peer.flow->start({.id = next_transfer_++,
                                         .operation = transfer::Operation::kWrite,
                                         .copies = *copies,
                                         .notifies = due.layer + 1 == config_.layout.layers},
                                        send.request);
  if (!started) mistake_ = started.error();
}

KVReceiver::KVReceiver(application::Node& node, const application::Address& at, u64 cache_bytes,
                       std::function<void(u32, Time)> on_complete)
    : node_(node),
      cache_(allocate(node, cache_bytes, Content::kCounted, Access::kRemoteWrite)),
      on_complete_(std::move(on_complete)) {
  CHECK(node.listen(at, {.sends = 1, .receives = kReceives}) == Status::kOk);
}

void KVReceiver::on_ready() {
  for (Event event; node_.poll(event);) {
    if (event.kind == Event::Kind::kConnectRequest) accept(event.connection);
    if (event.kind != Event::Kind::kReceived) continue;
    const auto inbox = inboxes_.find(event.connection);
    if (inbox == inboxes_.end()) continue;
    const u64 tag = transfer::read_tag(inbox->second.bytes.subspan(
        event.id * transfer::NodeFlow::kTagBytes, transfer::NodeFlow::kTagBytes));
    post_receive(event.connection, event.id);
    on_complete_(static_cast<u32>(tag), node_.now());
  }
}

void KVReceiver::accept(application::ConnectionId connection) {
  inboxes_[connection] =
      allocate(node_, kReceives * transfer::NodeFlow::kTagBytes, Content::kBytes, Access::kLocal);
  for (u32 slot = 0; slot < kReceives; ++slot) post_receive(connection, slot);
  std::array<u8, kPrivateBytes> told{};
  Writer<kPrivateBytes> out(told);
  out.put64<0>(cache_.address);
  out.put32<8>(cache_.r_key);
  node_.accept(connection, told);
}

void KVReceiver::post_receive(application::ConnectionId connection, u32 slot) {
  const application::Region& inbox = inboxes_.at(connection);
  constexpr u32 kBytes = transfer::NodeFlow::kTagBytes;
  node_.post_receive(connection, slot, {inbox.address + slot * kBytes, kBytes, inbox.l_key});
}

}  // namespace verbena::jobs
