#include "communicator/verbs/stream_mesh.h"

#include <poll.h>

#include <algorithm>

#include "communicator/clock.h"

namespace verbena::coll {
namespace {

tl::unexpected<Error> not_connected(u32 rank, const std::string& why) {
  return failure(VERBENA_COLL_RENDEZVOUS,
                 "the iWARP queue pair to rank " + std::to_string(rank) + " " + why,
                 static_cast<int>(rank));
}

}  // namespace

Expected<std::unique_ptr<StreamMesh>> StreamMesh::open(Rails rails, u32 rank, u64 incarnation) {
  std::unique_ptr<StreamMesh> mesh(new StreamMesh(rails, rank));
  auto connector = StreamConnector::open(rails, incarnation);
  if (!connector) return tl::unexpected(connector.error());
  mesh->connector_ = std::move(*connector);
  return mesh;
}

Expected<void> StreamMesh::connect(std::span<const StreamPeer> peers,
                                   std::span<const std::unique_ptr<Connection>> connections,
                                   i64 deadline) {
  for (u32 rank = 0; rank < peers.size(); ++rank)
    if (rank != rank_) add_lanes(rank, connections[rank]->addresses());
  for (const auto& [value, pending] : lanes_) {
    const Lane lane = Lane::of(value);
    if (lane.rank > rank_) continue;
    if (const auto begun = begin(lane, peers[lane.rank]); !begun) return begun;
  }
  while (first_missing())
    if (const auto news = await_event(deadline); !news) return news;
  return {};
}

void StreamMesh::add_lanes(u32 rank, const std::vector<QPAddress>& own) {
  for (u32 rail = 0; rail < rails_.size(); ++rail)
    if (has_streams(*rails_[rail]))
      lanes_[Lane{rank, rail}.value()].queue_pair = {.qp_num = own[rail].qp_num,
                                                     .reads = own[rail].reads};
}

Expected<void> StreamMesh::begin(Lane lane, const StreamPeer& peer) {
  const QPAddress& to = peer.addresses[lane.rail];
  if (to.stream_port == 0)
    return not_connected(lane.rank, "ends at a device that is no iWARP device");
  Pending& pending = lanes_[lane.value()];
  auto end = connector_->dial(
      {.from = rails_[lane.rail]->host(),
       .host = to.host(),
       .port = to.stream_port,
       .request = {.incarnation = peer.incarnation, .lane = Lane{rank_, lane.rail}.value()}},
      pending.queue_pair, lane.value());
  if (!end) return not_connected(lane.rank, "cannot be connected: " + end.error().text);
  pending.end = std::move(*end);
  return {};
}

Expected<void> StreamMesh::await_event(i64 deadline) {
  const i64 left = deadline - now_ns();
  if (left <= 0) return not_connected(first_missing()->rank, "was not connected in time");
  pollfd waiting{.fd = connector_->descriptor(), .events = POLLIN, .revents = 0};
  poll(&waiting, 1, static_cast<int>(std::min<i64>(left / kMillisecond + 1, 1000)));
  while (auto event = connector_->poll())
    if (const auto taken = take(std::move(*event)); !taken) return taken;
  return {};
}

// A request for a lane that is unknown, or that this side dials, is rejected.
Expected<void> StreamMesh::take(StreamEvent event) {
  const auto found = lanes_.find(event.lane);
  if (found == lanes_.end()) return {};
  Pending& pending = found->second;
  const u32 rank = Lane::of(event.lane).rank;
  switch (event.kind) {
    case StreamEvent::Kind::kRequest:
      if (rank < rank_ || pending.end != nullptr) return {};
      pending.end = std::move(event.end);
      if (pending.end->accept(pending.queue_pair, event.lane)) return {};
      return not_connected(rank, "cannot be accepted");
    case StreamEvent::Kind::kUp: pending.is_up = true; return {};
    case StreamEvent::Kind::kDown: return not_connected(rank, "was refused, or has ended");
  }
  return {};
}

std::optional<StreamMesh::Lane> StreamMesh::first_missing() const {
  const auto found =
      std::ranges::find_if(lanes_, [](const auto& lane) { return !lane.second.is_up; });
  return found == lanes_.end() ? std::nullopt : std::optional(Lane::of(found->first));
}

}  // namespace verbena::coll
