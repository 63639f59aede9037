#include "fabric/infiniband/infiniband_switch.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "fabric/infiniband/packets.h"

namespace verbena::fabric {
InfiniBandSwitch::InfiniBandSwitch(Domain& domain, const InfiniBandConfig& config, NodeIndex node,
                                   std::span<Port> ports, u32 first_port,
                                   const ForwardingTables& tables, const ManagedTables& managed)
    : domain_(domain),
      config_(config),
      node_(node),
      ports_(ports),
      first_port_(first_port),
      tables_(tables),
      managed_(managed) {
  for (const Port& port : ports) {
    const CreditConfig credits = credits_for(config, link_of(port));
    sides_.emplace_back(credits).fecn_threshold =
        credits.buffer_blocks * CreditConfig::kBlockBytes / 16 * (16u - config.fecn.threshold);
  }
}

void InfiniBandSwitch::on_arrival(u32 port, FrameIndex index) {
  Frame& frame = domain_.frames[index];
  if (frame.type == FrameType::kFlowControl) {
    on_flow_control(port, frame);
    return domain_.frames.give_back(index);
  }
  if (frame.extent != Extent::kRest)
    sides_[port].credits.on_received(frame.priority, frame.size_bytes);
  if (frame.type == FrameType::kLive) [[unlikely]]
    return on_live_arrival(port, index);
  const std::span<const u16> ways = tables_.ports(node_, frame.destination);
  if (ways.empty()) return drop(port, index, domain_.counters.unroutable);
  forward(port, way_of(ways, frame), index);
}

void InfiniBandSwitch::forward(u32 port, u16 out, FrameIndex index) {
  Frame& frame = domain_.frames[index];
  if (!ports_[out].up) return drop(port, index, domain_.counters.lost_on_dead_links);
  if (frame.extent == Extent::kHead && ports_[out].rate > ports_[port].rate)
    return wait_for_rest(port, index);
  frame.ingress = static_cast<u16>(port);
  if (path_log_ != nullptr) [[unlikely]]
    path_log_->note(frame, out);
  enqueue(out, index);
}

// Forwards by the DLID: one port, or those of a multicast group. The last copy has the place at the
// input.
void InfiniBandSwitch::on_live_arrival(u32 port, FrameIndex index) {
  const u16 dlid = dlid_of(domain_.frames[index]);
  u16 last = ManagedTables::kNoPort;
  for (const u16 way : managed_.ports(node_, dlid)) {
    if (way == port || !ports_[way].up) continue;
    if (const u16 before = std::exchange(last, way); before != ManagedTables::kNoPort) {
      const FrameIndex copy = domain_.frames.copy(index);
      domain_.frames[copy].ingress = kNoIngress;
      enqueue(before, copy);
    }
  }
  if (last != ManagedTables::kNoPort) return forward(port, last, index);
  ++sides_[port].dropped;
  drop(port, index, domain_.counters.unroutable);
}

// The neighbour finds out by the next flow control packet's FCTBS. Here at once.
void InfiniBandSwitch::on_lost(u32 port, FrameIndex index) {
  const Frame& frame = domain_.frames[index];
  if (frame.type == FrameType::kFlowControl) return domain_.frames.give_back(index);
  if (frame.extent != Extent::kRest)
    sides_[port].credits.on_received(frame.priority, frame.size_bytes);
  free(port, frame.priority, frame.size_bytes);
  domain_.frames.give_back(index);
}

// Adaptive routing: the shortest queue, of equal ones the first.
u16 InfiniBandSwitch::way_of(std::span<const u16> ways, const Frame& frame) const {
  u16 best = ways[0];
  for (const u16 way : ways.subspan(1))
    if (sides_[way].queues.bytes(frame.priority) < sides_[best].queues.bytes(frame.priority))
      best = way;
  return best;
}

// The way out would be faster than the packet comes.
void InfiniBandSwitch::wait_for_rest(u32 port, FrameIndex index) {
  Frame& frame = domain_.frames[index];
  frame.extent = Extent::kRest;
  const Duration* const times = ports_[port].times;
  domain_.events.add({domain_.now + times[frame.size_bytes] - times[kLRHBytes], EventKind::kArrival,
                      first_port_ + port, index});
}

void InfiniBandSwitch::drop(u32 ingress, FrameIndex index, u64& counter) {
  const Frame& frame = domain_.frames[index];
  ++counter;
  free(ingress, frame.priority, frame.size_bytes);
  domain_.frames.give_back(index);
}

void InfiniBandSwitch::on_flow_control(u32 port, const Frame& frame) {
  Side& side = sides_[port];
  side.credits.on_limit(frame.priority, credit_limit_of(frame));
  if (!side.queues.is_paused(frame.priority) || !side.credits.may_send(frame.priority)) return;
  side.queues.resume(frame.priority);
  if (side.queues.bytes(frame.priority) != 0) go_on(port);
}

void InfiniBandSwitch::enqueue(u32 port, FrameIndex index) {
  Side& side = sides_[port];
  const u32 lane = domain_.frames[index].priority;
  side.queues.push(lane, index, domain_.frames);
  side.longest_queue = std::max(side.longest_queue, side.queues.bytes(lane));
  go_on(port);
}

void InfiniBandSwitch::go_on(u32 port) {
  if (ports_[port].is_free(domain_.now))
    transmit(port);
  else
    wake_when_free(domain_, ports_[port], first_port_ + port);
}

void InfiniBandSwitch::on_wake(u32 port) {
  ports_[port].wake_pending = false;
  const Leaving left = std::exchange(sides_[port].leaving, {});
  if (left.bytes != 0) free(left.ingress, left.lane, left.bytes);
  if (ports_[port].is_free(domain_.now)) transmit(port);
}

// Precondition: the port is free.
void InfiniBandSwitch::transmit(u32 port) {
  Side& side = sides_[port];
  if (!ports_[port].up) return;
  if (side.owes != 0) return send_credits(port);
  const FrameIndex index = side.queues.pop(config_.arbitration, domain_.frames);
  if (index != kNoFrame) return send_packet(port, index);
  if (!side.queues.empty() && side.waits_since == Time::never()) side.waits_since = domain_.now;
}

void InfiniBandSwitch::send_packet(u32 port, FrameIndex index) {
  Side& side = sides_[port];
  Frame& frame = domain_.frames[index];
  const u32 lane = frame.priority;
  if (side.waits_since != Time::never())
    side.waited = side.waited + (domain_.now - std::exchange(side.waits_since, Time::never()));
  if (config_.fecn.enabled && frame.payload_bytes != 0) mark(side, frame);
  side.starved &= static_cast<u8>(~bit(lane));
  side.leaving = {frame.ingress, frame.size_bytes, frame.priority};
  side.credits.on_sent(lane, frame.size_bytes);
  side.sent.add(frame.size_bytes, cast_of(frame));
  put_on_wire(port, index);
  wake_when_free(domain_, ports_[port], first_port_ + port);
  if (side.credits.may_send(lane)) return;
  side.queues.pause(lane);
  side.starved |= bit(lane);
  side.without_credits[lane] = domain_.now;
}

void InfiniBandSwitch::send_credits(u32 port) {
  Side& side = sides_[port];
  const u32 lane = static_cast<u32>(std::countr_zero(side.owes));
  side.owes &= static_cast<u8>(~bit(lane));
  ++domain_.counters.credit_updates;
  put_on_wire(port, make_flow_control(domain_.frames, lane, side.credits));
  if (side.owes != 0 || side.queues.may_send())
    wake_when_free(domain_, ports_[port], first_port_ + port);
}

void InfiniBandSwitch::put_on_wire(u32 port, FrameIndex index) {
  sides_[port].sent_bytes += domain_.frames[index].size_bytes;
  send(domain_, ports_[port], index);
}

// The place at the input; its neighbour may send again.
void InfiniBandSwitch::free(u32 ingress, u32 lane, u32 bytes) {
  if (ingress == kNoIngress) return;
  Side& side = sides_[ingress];
  side.credits.on_freed(lane, bytes);
  if ((side.owes & bit(lane)) != 0 || !side.credits.update_is_due(lane)) return;
  side.owes |= bit(lane);
  go_on(ingress);
}

// Not a victim, whose queue is long for want of credits.
void InfiniBandSwitch::mark(Side& side, Frame& frame) {
  const u32 left = side.queues.bytes(frame.priority);
  if (left <= side.fecn_threshold || (side.starved & bit(frame.priority)) != 0) return;
  if (side.unmarked++ < config_.fecn.marking_rate) return;
  side.unmarked = 0;
  set_fecn(frame);
  ++side.marks;
  ++domain_.counters.marks;
}

// --- links that change

// Drops the packets that wait for the link. The input buffer of the port stays as full.
void InfiniBandSwitch::on_link_down(u32 port) {
  Side& side = sides_[port];
  for (u32 lane = 0; lane < kVirtualLanes; ++lane)
    while (side.queues.bytes(lane) != 0) {
      const FrameIndex index = side.queues.take(lane, domain_.frames);
      drop(domain_.frames[index].ingress, index, domain_.counters.lost_on_dead_links);
    }
  side.waits_since = Time::never();
}

// Reports the buffers to the neighbour again, as the other end does.
void InfiniBandSwitch::on_link_up(u32 port) {
  sides_[port].owes = static_cast<u8>((1u << config_.lanes) - 1);
  go_on(port);
}

// --- for those who look on

void InfiniBandSwitch::fetch() const {
  tables_.fetch(node_);
  prefetch_bytes(sides_.data(), sides_.size() * sizeof(Side));
}

Duration InfiniBandSwitch::waited_for_credits(u32 port, Time now) const {
  const Side& side = sides_[port];
  if (side.waits_since == Time::never()) return side.waited;
  return side.waited + (now - side.waits_since);
}

bool InfiniBandSwitch::is_stuck(u32 port, u32 lane, Time since) const {
  const Side& side = sides_[port];
  return side.queues.is_paused(lane) && side.queues.bytes(lane) != 0 &&
         side.without_credits[lane] <= since;
}

bool InfiniBandSwitch::holds(u32 port, u32 lane, u32 ingress) const {
  return sides_[port].queues.any_of(
      lane, domain_.frames, [ingress](const Frame& frame) { return frame.ingress == ingress; });
}

}  // namespace verbena::fabric
