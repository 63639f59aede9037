#include "fabric/nodes/simulated_node.h"

#include <algorithm>

#include "base/check.h"

namespace verbena::fabric {

using application::Address;
using application::ConnectionId;
using NodeEvent = application::Event;
using application::Operation;
using application::Region;
using application::Slice;
using application::Work;

void SimulatedNode::set_alarm(Time at) {
  alarm_ = at;
  if (at != Time::never()) {
    const Time now = std::max(now_, all_.network.now());
    all_.network.set_alarm(host_, std::max(at, now), all_.word_mark | host_);
  }
}

void SimulatedNode::on_alarm(Time now) {
  now_ = now;
  if (alarm_ > now) return;
  alarm_ = Time::never();
  tell({.kind = NodeEvent::Kind::kAlarm});
  wake();
}

Result<Region> SimulatedNode::register_bytes(std::span<u8> bytes, application::Access access) {
  return memory_.add(bytes, access);
}

Result<Region> SimulatedNode::allocate(u64 bytes, application::Content content,
                                       application::Access access) {
  return memory_.allocate(bytes, content, access);
}

Status SimulatedNode::listen(const Address& at, const application::QueueDepths&) {
  if (std::ranges::find(listening_, at.port) != listening_.end()) return Status::kBusy;
  listening_.push_back(at.port);
  return Status::kOk;
}

u32 SimulatedNode::add_channel(u32 outgoing, NodeIndex peer, bool is_active) {
  channels_.push_back({.outgoing = outgoing, .peer = peer, .is_active = is_active});
  return static_cast<u32>(channels_.size()) - 1;
}

SimulatedNode::Channel* SimulatedNode::find(ConnectionId id) {
  const auto found = channel_of_.find(id);
  return found == channel_of_.end() ? nullptr : &channels_[found->second];
}

// --- connections

Result<ConnectionId> SimulatedNode::connect(const Address& to, const application::QueueDepths&,
                                            std::span<const u8> private_data) {
  const auto is_usable = [&](const Channel& channel) {
    return channel.is_active && channel.state == State::kFree &&
           node_address(channel.peer, 0).ip == to.ip;
  };
  const auto channel = std::ranges::find_if(channels_, is_usable);
  if (channel == channels_.end()) return failure(Status::kNotFound);
  channel->state = State::kConnecting;
  ++channel->incarnation;
  channel->connection = next_connection_++;
  channel_of_[channel->connection] = static_cast<u32>(channel - channels_.begin());
  NodePacket packet{.kind = NodePacket::Kind::kConnect,
                    .length = NodePacket::kControlBytes,
                    .bytes = {private_data.begin(), private_data.end()},
                    .port = to.port};
  send(*channel, std::move(packet), {});
  return channel->connection;
}

void SimulatedNode::begin(Channel& channel, NodePacket&& packet) {
  channel.incarnation = packet.incarnation;
  if (channel.state != State::kFree) return;
  if (std::ranges::find(listening_, packet.port) == listening_.end())
    return send_control(channel, NodePacket::Kind::kReject, {});
  channel.state = State::kRequested;
  channel.connection = next_connection_++;
  channel_of_[channel.connection] = static_cast<u32>(&channel - channels_.data());
  tell({.kind = NodeEvent::Kind::kConnectRequest,
        .connection = channel.connection,
        .peer = node_address(channel.peer, 0),
        .listen_port = packet.port},
       packet.bytes);
}

void SimulatedNode::accept(ConnectionId id, std::span<const u8> private_data) {
  Channel* const channel = find(id);
  if (channel == nullptr || channel->state != State::kRequested) return;
  channel->state = State::kConnected;
  send_control(*channel, NodePacket::Kind::kAccept, private_data);
  tell({.kind = NodeEvent::Kind::kConnected, .connection = id});
}

void SimulatedNode::reject(ConnectionId id, std::span<const u8> private_data) {
  Channel* const channel = find(id);
  if (channel == nullptr || channel->state != State::kRequested) return;
  send_control(*channel, NodePacket::Kind::kReject, private_data);
  close(*channel, NodeEvent::Kind::kClosed, {});
}

void SimulatedNode::disconnect(ConnectionId id) {
  if (Channel* const channel = find(id)) fail(*channel);
}

void SimulatedNode::fail(Channel& channel) {
  send_control(channel, NodePacket::Kind::kDisconnect, {});
  close(channel, NodeEvent::Kind::kClosed, {});
}

void SimulatedNode::close(Channel& channel, NodeEvent::Kind kind,
                          std::span<const u8> private_data) {
  tell({.kind = kind, .connection = channel.connection}, private_data);
  channel_of_.erase(channel.connection);
  channel.state = State::kFree;
  channel.receives.clear();
  channel.unreceived.clear();
  channel.reads.clear();
}

// --- what goes out

void SimulatedNode::send_control(Channel& channel, NodePacket::Kind kind,
                                 std::span<const u8> private_data) {
  send(channel,
       {.kind = kind,
        .length = NodePacket::kControlBytes,
        .bytes = {private_data.begin(), private_data.end()}},
       {});
}

void SimulatedNode::send(Channel& channel, NodePacket packet, const Posted& posted) {
  packet.incarnation = channel.incarnation;
  channel.waiting.push_back({std::move(packet), posted});
  transmit(channel);
}

void SimulatedNode::transmit(Channel& channel) {
  while (!channel.waiting.empty() && channel.under_way.size() < all_.depth) {
    auto& [packet, posted] = channel.waiting.front();
    const bool is_read_request = packet.kind == NodePacket::Kind::kReadRequest;
    const u64 bytes = is_read_request ? NodePacket::kReadRequestBytes : packet.length;
    channel.under_way.push_back(posted);
    all_.directions[channel.outgoing]->queue.push(std::move(packet));
    channel.waiting.pop_front();
    all_.network.send(all_.first_connection + channel.outgoing,
                      static_cast<u32>(std::max<u64>(bytes, 1)), 0);
  }
}

void SimulatedNode::on_sent(u32 number, Time now) {
  now_ = now;
  Channel& channel = channels_[number];
  const Posted posted = channel.under_way.front();
  channel.under_way.pop_front();
  if (posted.counts && posted.report == application::Report::kAlways && find(posted.connection))
    tell({.kind = NodeEvent::Kind::kDone, .connection = posted.connection, .id = posted.id});
  transmit(channel);
  wake();
}

// A part of counted memory between others with contents is zeros.
bool SimulatedNode::gather(const Work& work, NodePacket& packet) const {
  for (const Slice& slice : work.local) {
    if (!memory_.allows(slice.l_key, slice.address, slice.bytes, NodeMemory::Use::kLocal))
      return false;
    packet.length += slice.bytes;
    const std::size_t before = packet.bytes.size();
    memory_.append(slice.l_key, slice.address, slice.bytes, packet.bytes);
    if (before > 0 && packet.bytes.size() == before) packet.bytes.resize(before + slice.bytes);
  }
  return packet.length <= ConnectionConfig::kMaxMessageBytes;
}

void SimulatedNode::post_receive(ConnectionId id, u32 work, const Slice& into) {
  Channel* const channel = find(id);
  if (channel == nullptr) return;
  channel->receives.push_back({work, into});
  if (channel->unreceived.empty()) return;
  NodePacket packet = std::move(channel->unreceived.front());
  channel->unreceived.pop_front();
  receive(*channel, std::move(packet));
}

void SimulatedNode::post(ConnectionId id, const Work& work) {
  Channel* const channel = find(id);
  if (channel == nullptr || channel->state != State::kConnected) return;
  NodePacket packet{
      .remote_address = work.remote_address, .r_key = work.r_key, .invalidate = work.invalidate};
  switch (work.operation) {
    case Operation::kSend: packet.kind = NodePacket::Kind::kSend; break;
    case Operation::kWrite: packet.kind = NodePacket::Kind::kWrite; break;
    case Operation::kRead: {
      packet.kind = NodePacket::Kind::kReadRequest;
      packet.work = channel->next_read++;
      for (const Slice& slice : work.local) packet.length += slice.bytes;
      channel->reads[packet.work] = {work.id, work.report, {work.local.begin(), work.local.end()}};
      return send(*channel, std::move(packet), {});
    }
  }
  if (!gather(work, packet)) return fail(*channel);
  send(*channel, std::move(packet), {work.id, work.report, true, id});
}

// --- what comes in

void SimulatedNode::on_packet(u32 number, NodePacket packet, Time now) {
  now_ = now;
  Channel& channel = channels_[number];
  const ConnectionId id = channel.connection;
  if (packet.kind == NodePacket::Kind::kConnect)
    begin(channel, std::move(packet));
  else if (packet.incarnation != channel.incarnation || channel.state == State::kFree)
    return;  // of an earlier connection
  else if (packet.kind == NodePacket::Kind::kAccept) {
    channel.state = State::kConnected;
    tell({.kind = NodeEvent::Kind::kConnected, .connection = id}, packet.bytes);
  } else if (packet.kind == NodePacket::Kind::kReject)
    close(channel, NodeEvent::Kind::kRefused, packet.bytes);
  else if (packet.kind == NodePacket::Kind::kDisconnect)
    close(channel, NodeEvent::Kind::kClosed, {});
  else
    on_connected_packet(channel, std::move(packet));
  wake();
}

void SimulatedNode::on_connected_packet(Channel& channel, NodePacket&& packet) {
  switch (packet.kind) {
    case NodePacket::Kind::kSend:
      if (channel.receives.empty()) return channel.unreceived.push_back(std::move(packet));
      return receive(channel, std::move(packet));
    case NodePacket::Kind::kWrite:
      if (!memory_.allows(packet.r_key, packet.remote_address, packet.length,
                          NodeMemory::Use::kWrite))
        return fail(channel);
      return memory_.copy_in(packet.r_key, packet.remote_address, packet.bytes);
    case NodePacket::Kind::kReadRequest: return serve_read(channel, packet);
    case NodePacket::Kind::kReadResponse: return finish_read(channel, packet);
    case NodePacket::Kind::kConnect:
    case NodePacket::Kind::kAccept:
    case NodePacket::Kind::kReject:
    case NodePacket::Kind::kDisconnect: break;
  }
  CHECK_UNREACHABLE();
}

void SimulatedNode::receive(Channel& channel, NodePacket&& packet) {
  const auto [id, into] = channel.receives.front();
  channel.receives.pop_front();
  if (packet.length > into.bytes ||
      !memory_.allows(into.l_key, into.address, packet.length, NodeMemory::Use::kLocal))
    return fail(channel);
  memory_.copy_in(into.l_key, into.address, packet.bytes);
  if (packet.invalidate) memory_.invalidate(*packet.invalidate);
  tell({.kind = NodeEvent::Kind::kReceived,
        .connection = channel.connection,
        .id = id,
        .bytes = static_cast<u32>(packet.length),
        .invalidated = packet.invalidate});
}

void SimulatedNode::serve_read(Channel& channel, const NodePacket& request) {
  if (!memory_.allows(request.r_key, request.remote_address, request.length,
                      NodeMemory::Use::kRead))
    return fail(channel);
  NodePacket response{
      .kind = NodePacket::Kind::kReadResponse, .work = request.work, .length = request.length};
  memory_.append(request.r_key, request.remote_address, request.length, response.bytes);
  send(channel, std::move(response), {});
}

void SimulatedNode::finish_read(Channel& channel, const NodePacket& response) {
  const auto found = channel.reads.find(response.work);
  if (found == channel.reads.end()) return;
  const Read read = std::move(found->second);
  channel.reads.erase(found);
  std::span<const u8> left = response.bytes;
  for (const Slice& slice : read.into) {
    if (!memory_.allows(slice.l_key, slice.address, slice.bytes, NodeMemory::Use::kLocal))
      return fail(channel);
    const std::size_t bytes = std::min<std::size_t>(slice.bytes, left.size());
    memory_.copy_in(slice.l_key, slice.address, left.first(bytes));
    left = left.subspan(bytes);
  }
  if (read.report == application::Report::kAlways)
    tell({.kind = NodeEvent::Kind::kDone, .connection = channel.connection, .id = read.id});
}

// --- events

void SimulatedNode::tell(NodeEvent event, std::span<const u8> private_data) {
  events_.push_back({event, {private_data.begin(), private_data.end()}});
}

bool SimulatedNode::poll(NodeEvent& out) {
  if (events_.empty()) return false;
  private_data_ = std::move(events_.front().private_data);
  out = events_.front().event;
  out.private_data = private_data_;
  events_.pop_front();
  return true;
}

void SimulatedNode::wake() {
  if (program_ != nullptr && !events_.empty()) program_->on_ready();
}

}  // namespace verbena::fabric
