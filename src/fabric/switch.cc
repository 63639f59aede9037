#include "fabric/switch.h"

#include "fabric/ecmp.h"
#include "fabric/pause_frame.h"
#include "wire/eth/ecn.h"

namespace verbena::fabric {
namespace {

std::vector<SharedBuffer::PortConfig> buffers_of(const std::vector<SwitchPortConfig>& configs) {
  std::vector<SharedBuffer::PortConfig> buffers;
  for (const SwitchPortConfig& config : configs) buffers.push_back(config.buffer);
  return buffers;
}

}  // namespace

Switch::Switch(Domain& domain, const SwitchConfig& config, NodeIndex node, std::span<Port> ports,
               u32 first_port, std::vector<SwitchPortConfig> port_configs, const Routes& routes,
               const std::vector<u32>& addresses)
    : domain_(domain),
      config_(config),
      node_(node),
      ports_(ports),
      first_port_(first_port),
      routes_(routes),
      addresses_(addresses),
      prng_(config.seed),
      spreading_(config.spreading, config.hash_seed, PRNG(config.seed).fork().next()),
      buffer_(config.buffer, buffers_of(port_configs)),
      sides_(ports.size()),
      rare_(ports.size()) {
  for (std::size_t i = 0; i < sides_.size(); ++i) sides_[i].marking = port_configs[i].marking;
}

// All that follows in one function, here and in on_wake(): a hop is most of what a simulation does,
// and a tenth of it were calls.
[[gnu::flatten]] void Switch::on_arrival(u32 port, FrameIndex index) {
  Frame& frame = domain_.frames[index];
  if (frame.type == FrameType::kPause) {
    on_pause_frame(port, frame);
    return domain_.frames.give_back(index);
  }
  const u32 out = way_of(frame);
  if (out == kNoWay) return drop(index, domain_.counters.unroutable);
  if (frame.extent == Extent::kHead && ports_[out].rate > ports_[port].rate)
    return wait_for_rest(port, index);
  if ((sides_[out].storming & bit(frame.priority)) != 0)
    return drop(index, domain_.counters.watchdog_drops);
  if (drops_early(out, frame)) return drop(index, domain_.counters.early_drops);
  frame.ingress = static_cast<u16>(port);
  if (path_log_ != nullptr) [[unlikely]]
    path_log_->note(frame, static_cast<u16>(out));
  if (!admit(port, frame)) return drop(index, domain_.counters.drops);
  enqueue(out, index);
}

// The way out would be faster than the frame comes.
void Switch::wait_for_rest(u32 port, FrameIndex index) {
  Frame& frame = domain_.frames[index];
  frame.extent = Extent::kRest;
  const Duration* const times = ports_[port].times;
  domain_.events.add({domain_.now + times[frame.size_bytes] - times[ForwardingConfig::kHeadBytes],
                      EventKind::kArrival, first_port_ + port, index});
}

void Switch::fetch() const {
  routes_.fetch(node_);
  prefetch_bytes(sides_.data(), sides_.size() * sizeof(Side));
  prefetch_bytes(ports_.data(), ports_.size() * sizeof(Port));
  buffer_.fetch();
}

bool Switch::is_lossless(u32 priority) const {
  return (config_.pfc.priorities & bit(priority)) != 0;
}

// Returns false if there is no room.
bool Switch::admit(u32 port, Frame& frame) {
  const bool obeys = frame.obeys_pause;
  frame.obeys_pause = true;  // from here on its queue decides
  if (!is_lossless(frame.priority))
    return buffer_.admit_lossy(port, frame.priority, frame.size_bytes);
  const SharedBuffer::Verdict verdict =
      buffer_.admit(port, frame.priority, frame.size_bytes, obeys);
  if (verdict == SharedBuffer::Verdict::kAdmittedPause && config_.pfc.enabled)
    ask_to_pause(port, frame.priority, config_.pfc.quanta);
  return verdict != SharedBuffer::Verdict::kRefused;
}

u32 Switch::way_of(const Frame& frame) {
  std::span<const u16> ways = routes_.ports(node_, frame.destination);
  if (ports_down_ != 0) ways = those_up(ways);
  if (ways.empty()) return kNoWay;
  if (ways.size() == 1) return ways[0];
  return spreading_.choose(ways,
                           {.source_address = addresses_[frame.source],
                            .destination_address = addresses_[frame.destination],
                            .source_port = frame.source_port,
                            .destination_port = frame.destination_port},
                           frame, domain_.now,
                           [this](u16 port) { return sides_[port].queues.bytes_of_all(); });
}

void Switch::drop(FrameIndex index, u64& counter) {
  ++counter;
  domain_.frames.give_back(index);
}

void Switch::enqueue(u32 port, FrameIndex index) {
  Side& side = sides_[port];
  const u32 queue = domain_.frames[index].priority;
  if (side.queues.empty() && !side.queues.is_paused(queue) && ports_[port].is_free(domain_.now))
    return pass_on(port, index);
  side.queues.push(queue, index, domain_.frames);
  side.longest_queue = std::max(side.longest_queue, side.queues.bytes(queue));
  if (config_.mark_at == MarkAt::kEnqueue)
    mark(port, domain_.frames[index], side.queues.bytes(queue));
  if (ports_[port].is_free(domain_.now))
    transmit(port);
  else
    wake_when_free(domain_, ports_[port], first_port_ + port);
}

// Does the work of enqueue() and transmit() where no frame waits.
void Switch::pass_on(u32 port, FrameIndex index) {
  Side& side = sides_[port];
  Frame& frame = domain_.frames[index];
  side.longest_queue = std::max<u32>(side.longest_queue, frame.size_bytes);
  mark(port, frame, config_.mark_at == MarkAt::kEnqueue ? frame.size_bytes : 0);
  put_on_wire(port, index);
  leave(frame);
}

[[gnu::flatten]] void Switch::on_wake(u32 port) {
  ports_[port].wake_pending = false;
  transmit(port);
}

// Precondition: the port is free.
void Switch::transmit(u32 port) {
  Side& side = sides_[port];
  const FrameIndex index = side.queues.pop(config_.discipline, domain_.frames);
  if (index == kNoFrame) return;
  Frame& frame = domain_.frames[index];
  const bool is_buffered = frame.type != FrameType::kPause;
  if (is_buffered && config_.mark_at == MarkAt::kDequeue)
    mark(port, frame, side.queues.bytes(frame.priority));
  put_on_wire(port, index);
  if (side.queues.may_send()) wake_when_free(domain_, ports_[port], first_port_ + port);
  if (is_buffered) leave(frame);
}

void Switch::put_on_wire(u32 port, FrameIndex index) {
  Side& side = sides_[port];
  const Frame& frame = domain_.frames[index];
  if (config_.telemetry.enabled && frame.payload_bytes != 0)
    note(domain_.frames.path(index),
         {.rate = ports_[port].rate,
          .at = domain_.now,
          .sent_bytes = side.sent_bytes,
          .queued_bytes = side.queues.bytes_of_all()},
         config_.telemetry);
  side.sent_bytes += frame.size_bytes;
  send(domain_, ports_[port], index);
}

// The frame leaves the buffer; the neighbour that it came from may go on.
void Switch::leave(const Frame& frame) {
  if (buffer_.release(frame.ingress, frame.priority, frame.size_bytes) && config_.pfc.enabled)
    ask_to_pause(frame.ingress, frame.priority, 0);
}

bool Switch::would_mark(u32 port, const Frame& frame, u32 bytes) {
  const MarkingConfig& marking = sides_[port].marking;
  if (!marking.enabled || (marking.priorities & bit(frame.priority)) == 0) return false;
  const u64 length = marking.weight == 1
                         ? bytes
                         : rare_[port].average[frame.priority].update(marking.weight, bytes);
  return marks(marking, length, prng_);
}

void Switch::mark(u32 port, Frame& frame, u32 bytes) {
  if (ecn_of(frame.traffic_class) == ECN::kNotECT || !would_mark(port, frame, bytes)) return;
  frame.traffic_class = traffic_class_of(dscp_of(frame.traffic_class), ECN::kCE);
  ++domain_.counters.marks;
  ++sides_[port].marks;
}

bool Switch::drops_early(u32 port, const Frame& frame) {
  const Side& side = sides_[port];
  return side.marking.not_ect == MarkingConfig::NotECT::kDrop &&
         ecn_of(frame.traffic_class) == ECN::kNotECT &&
         would_mark(port, frame, side.queues.bytes(frame.priority) + frame.size_bytes);
}

// Quanta of 0 ask the neighbour to go on.
void Switch::ask_to_pause(u32 port, u32 priority, u16 quanta) {
  if (!ports_[port].up || (quanta == 0 && (rare_[port].stuck & bit(priority)) != 0)) return;
  const FrameIndex index =
      make_pause(domain_.frames, domain_.counters, priority, quanta, config_.pfc.frame_bytes);
  sides_[port].queues.push(EgressQueues::kControl, index, domain_.frames);
  if (ports_[port].is_free(domain_.now))
    transmit(port);
  else
    wake_when_free(domain_, ports_[port], first_port_ + port);
  if (config_.pfc.expiry == PauseExpiry::kNever) return;
  Rare& rare = rare_[port];
  if (quanta == 0) {
    rare.asking &= static_cast<u8>(~bit(priority));
    return;
  }
  // Half the time that it lasts: the refresh is there before it ends.
  rare.asking |= bit(priority);
  rare.ask_again[priority] = domain_.now + pause_time(quanta, ports_[port].rate) / 2;
  domain_.events.add({rare.ask_again[priority], EventKind::kPause, first_port_ + port});
}

void Switch::on_pause_frame(u32 port, const Frame& frame) {
  const u32 priority = frame.priority;
  if (domain_.trace != nullptr)
    domain_.trace->on_pause_received(node_, port, priority, frame.pause_quanta, domain_.now);
  if (frame.pause_quanta == 0) {
    resume(port, priority);
    return send_on(port);
  }
  pause(port, priority,
        config_.pfc.expiry == PauseExpiry::kNever
            ? Time::never()
            : domain_.now + pause_time(frame.pause_quanta, ports_[port].rate));
}

void Switch::pause(u32 port, u32 priority, Time until) {
  Side& side = sides_[port];
  rare_[port].paused_until[priority] = until;
  if (until != Time::never()) domain_.events.add({until, EventKind::kPause, first_port_ + port});
  if ((side.storming & bit(priority)) != 0 || side.queues.is_paused(priority)) return;
  side.queues.pause(priority);
  rare_[port].paused_since[priority] = domain_.now;
  if (config_.pfc.watchdog.enabled)
    domain_.events.add(
        {domain_.now + config_.pfc.watchdog.detection, EventKind::kPause, first_port_ + port});
}

// The pause is over. To heed pauses again the watchdog waits.
void Switch::resume(u32 port, u32 priority) {
  Side& side = sides_[port];
  rare_[port].paused_until[priority] = domain_.now;
  side.queues.resume(priority);
  if ((side.storming & bit(priority)) != 0)
    domain_.events.add(
        {domain_.now + config_.pfc.watchdog.restoration, EventKind::kPause, first_port_ + port});
}

void Switch::send_on(u32 port) {
  if (!sides_[port].queues.may_send()) return;
  if (ports_[port].is_free(domain_.now))
    transmit(port);
  else
    wake_when_free(domain_, ports_[port], first_port_ + port);
}

// Handles pauses that end by themselves, and those that must be asked for again.
void Switch::on_pause_timer(u32 port) {
  const Rare& rare = rare_[port];
  for (u32 priority = 0; priority < kPriorities; ++priority) {
    if ((rare.asking & bit(priority)) != 0 && rare.ask_again[priority] == domain_.now)
      ask_to_pause(port, priority, config_.pfc.quanta);
    if (rare.paused_until[priority] == domain_.now && domain_.now > Time()) resume(port, priority);
    if (config_.pfc.watchdog.enabled) watch(port, priority);
  }
  send_on(port);
}

void Switch::watch(u32 port, u32 priority) {
  Side& side = sides_[port];
  const PFCWatchdogConfig& watchdog = config_.pfc.watchdog;
  if ((side.storming & bit(priority)) != 0) {
    const Time end = rare_[port].paused_until[priority];
    if (domain_.now >= end && domain_.now - end >= watchdog.restoration)
      side.storming &= static_cast<u8>(~bit(priority));
    return;
  }
  if (!side.queues.is_paused(priority) ||
      domain_.now - rare_[port].paused_since[priority] < watchdog.detection)
    return;
  ++domain_.counters.storms;
  side.storming |= bit(priority);
  flush(port, priority, domain_.counters.watchdog_drops);
  side.queues.resume(priority);
}

// Drops the frames that wait in the queue, which makes room.
void Switch::flush(u32 port, u32 queue, u64& counter) {
  Side& side = sides_[port];
  while (side.queues.bytes(queue) != 0) {
    const FrameIndex index = side.queues.take(queue, domain_.frames);
    if (domain_.frames[index].type != FrameType::kPause) leave(domain_.frames[index]);
    drop(index, counter);
  }
}

// --- links that change, and a port that is broken

std::span<const u16> Switch::those_up(std::span<const u16> ways) {
  ways_up_.clear();
  for (const u16 way : ways)
    if (ports_[way].up) ways_up_.push_back(way);
  return ways_up_;
}

void Switch::on_link_down(u32 port) {
  ++ports_down_;
  Side& side = sides_[port];
  rare_[port].asking = side.storming = 0;
  rare_[port].paused_until = {};
  for (u32 queue = 0; queue <= EgressQueues::kControl; ++queue) {
    side.queues.resume(queue);
    flush(port, queue, domain_.counters.lost_on_dead_links);
  }
}

// The neighbour has forgotten what it was told.
void Switch::on_link_up(u32 port) {
  --ports_down_;
  for (u32 priority = 0; priority < kPriorities; ++priority)
    if (buffer_.paused(port, priority) || (rare_[port].stuck & bit(priority)) != 0)
      ask_to_pause(port, priority, config_.pfc.quanta);
}

void Switch::begin_stuck_pause(u32 port, u32 priority) {
  rare_[port].stuck |= bit(priority);
  ask_to_pause(port, priority, config_.pfc.quanta);
}

void Switch::end_stuck_pause(u32 port, u32 priority) {
  rare_[port].stuck &= static_cast<u8>(~bit(priority));
  if (!buffer_.paused(port, priority)) ask_to_pause(port, priority, 0);
}

// --- for a look at deadlocks

bool Switch::is_stuck(u32 port, u32 priority, Time since) const {
  const Side& side = sides_[port];
  return side.queues.is_paused(priority) && side.queues.bytes(priority) != 0 &&
         rare_[port].paused_since[priority] <= since;
}

bool Switch::holds(u32 port, u32 priority, u32 ingress) const {
  return sides_[port].queues.any_of(
      priority, domain_.frames, [ingress](const Frame& frame) { return frame.ingress == ingress; });
}

}  // namespace verbena::fabric
