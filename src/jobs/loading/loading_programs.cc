#include "jobs/loading/loading_programs.h"

#include "base/bytes.h"
#include "base/check.h"

namespace verbena::jobs {
namespace {

using application::Access;
using application::Content;
using application::Event;
using transfer::NodeFlow;

constexpr u32 kPlaceBytes = 12;       // the memory's address and R_Key
constexpr u32 kNoticeBit = 1u << 31;  // in the IDs of transfers

transfer::FlowLimits limits_of_loader() {
  return {.transfers = 1u << 20, .copies = u64{1} << 32, .requests_per_lane = 16};
}

}  // namespace

ChunkServer::ChunkServer(application::Node& node, const application::Address& at, u64 bytes)
    : node_(node) {
  const auto memory = node.allocate(bytes, Content::kCounted, Access::kRemoteRead);
  CHECK(memory.has_value());
  memory_ = *memory;
  CHECK(node.listen(at, {.sends = 1, .receives = kReceives}) == Status::kOk);
}

std::optional<u64> ChunkServer::on_event(const Event& event) {
  if (event.kind == Event::Kind::kConnectRequest) accept(event.connection);
  if (event.kind != Event::Kind::kReceived) return std::nullopt;
  const auto inbox = inboxes_.find(event.connection);
  if (inbox == inboxes_.end()) return std::nullopt;
  const u64 tag = transfer::read_tag(
      inbox->second.bytes.subspan(event.id * NodeFlow::kTagBytes, NodeFlow::kTagBytes));
  post_receive(event.connection, event.id);
  return tag;
}

void ChunkServer::accept(application::ConnectionId connection) {
  const auto inbox =
      node_.allocate(kReceives * NodeFlow::kTagBytes, Content::kBytes, Access::kLocal);
  CHECK(inbox.has_value());
  inboxes_[connection] = *inbox;
  for (u32 slot = 0; slot < kReceives; ++slot) post_receive(connection, slot);
  std::array<u8, kPlaceBytes> told{};
  Writer<kPlaceBytes> out(told);
  out.put64<0>(memory_.address);
  out.put32<8>(memory_.r_key);
  node_.accept(connection, told);
}

void ChunkServer::post_receive(application::ConnectionId connection, u32 slot) {
  const application::Region& inbox = inboxes_.at(connection);
  node_.post_receive(
      connection, slot,
      {inbox.address + u64{slot} * NodeFlow::kTagBytes, NodeFlow::kTagBytes, inbox.l_key});
}

void SourceProgram::on_ready() {
  for (Event event; node_.poll(event);) (void)server_.on_event(event);
}

LoaderProgram::LoaderProgram(application::Node& node, const Config& config)
    : node_(node),
      config_(config),
      server_(node, config.self, u64{config.chunks} * config.chunk_bytes),
      tree_(static_cast<u32>(config.group.size())),
      missing_(config.chunks) {
  connect(source_, config.source);
  if (!config.group.empty())
    for (const u32 member : tree_.neighbours_of(config.member))
      connect(peers_[member], config.group[member]);
  for (u32 chunk = 0; chunk < config.chunks; ++chunk)
    if (root_of(chunk) == config.member) {
      source_.reads.push_back(chunk);
      ++from_source_;
    }
}

// Returns the member that reads the chunk from the source.
u32 LoaderProgram::root_of(u32 chunk) const {
  return config_.group.empty() ? config_.member : chunk % static_cast<u32>(config_.group.size());
}

void LoaderProgram::connect(Peer& peer, const application::Address& to) {
  const auto connection = node_.connect(to, {.sends = 64, .receives = 1}, {});
  if (!connection) {
    mistake_ = "there is no path between two GPUs, or to a source";
    return;
  }
  peer.connection = *connection;
  peer_of_[*connection] = &peer;
  peer.flow = std::make_unique<NodeFlow>(node_, limits_of_loader());
  CHECK(peer.flow->add_local_region(server_.memory().l_key) == 0);
}

void LoaderProgram::on_connected(Peer& peer, const Event& event) {
  const Reader<kPlaceBytes> in(event.private_data.first<kPlaceBytes>());
  peer.base = in.get64<0>();
  CHECK(peer.flow->add_remote_region(in.get32<8>()) == 0);
  peer.flow->add_lane(event.connection);
  peer.is_connected = true;
  for (const u32 chunk : std::exchange(peer.reads, {})) read(peer, chunk);
  for (const u32 chunk : std::exchange(peer.notices, {})) notify(peer, chunk);
}

void LoaderProgram::read(Peer& peer, u32 chunk) {
  if (!peer.is_connected) return peer.reads.push_back(chunk);
  const u64 offset = u64{chunk} * config_.chunk_bytes;
  const auto started = peer.flow->start({.id = chunk,
                                         .operation = transfer::Operation::kRead,
                                         .copies = {{.local = server_.memory().address + offset,
                                                     .remote = peer.base + offset,
                                                     .length = config_.chunk_bytes}}},
                                        0);
  if (!started) mistake_ = started.error();
}

void LoaderProgram::notify(Peer& peer, u32 chunk) {
  if (!peer.is_connected) return peer.notices.push_back(chunk);
  const auto started =
      peer.flow->start({.id = kNoticeBit | next_notice_++, .notifies = true}, chunk);
  if (!started) mistake_ = started.error();
}

void LoaderProgram::on_ready() {
  for (Event event; node_.poll(event);) on_event(event);
  drain(source_);
  for (auto& [member, peer] : peers_) drain(peer);
  for (auto& [member, peer] : peers_)  // of the notifications that drain() has started
    if (peer.is_connected) peer.flow->pump();
}

void LoaderProgram::on_event(const Event& event) {
  if (const auto tag = server_.on_event(event)) {
    const u32 chunk = static_cast<u32>(*tag);
    return read(peers_.at(tree_.parent_of(config_.member, root_of(chunk))), chunk);
  }
  const auto found = peer_of_.find(event.connection);
  if (found == peer_of_.end()) return;
  if (event.kind == Event::Kind::kConnected)
    on_connected(*found->second, event);
  else
    (void)found->second->flow->on_event(event);
}

void LoaderProgram::drain(Peer& peer) {
  if (!peer.is_connected) return;
  peer.flow->pump();
  while (const auto outcome = peer.flow->poll_outcome()) {
    if (outcome->result == transfer::Result::kFailed) mistake_ = outcome->why;
    if ((outcome->transfer & kNoticeBit) == 0) on_chunk(outcome->transfer);
  }
}

void LoaderProgram::on_chunk(u32 chunk) {
  if (--missing_ == 0) done_at_ = node_.now();
  if (config_.group.empty()) return;
  for (const u32 child : tree_.children_of(config_.member, root_of(chunk)))
    notify(peers_.at(child), chunk);
}

}  // namespace verbena::jobs
