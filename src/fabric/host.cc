#include "fabric/host.h"

#include <algorithm>
#include <array>
#include <utility>

#include "fabric/ecmp.h"
#include "fabric/infiniband/packets.h"
#include "fabric/pause_frame.h"
#include "wire/eth/ecn.h"
#include "wire/ib/packet.h"

namespace verbena::fabric {
namespace {

constexpr u32 kFewCQEs = 16;
constexpr std::array<u8, TransmissionTimes::kMaxBytes> kNoBytes{};  // frames: counted, not read
constexpr const u8* kNowhere = nullptr;                             // and payload, not kept either

bool is_cnp(const EgressFrame& frame) {
  return frame.headers[0] >> 5 == static_cast<u8>(Service::kCNP);
}

// A port takes frames one by one, so QPs take turns so, and acknowledgements wait for no data.
HostConfig as_nic(HostConfig config) {
  config.device.egress = {.run_packets = 1, .acknowledgements = AcknowledgementOrder::kFirst};
  return config;
}

}  // namespace

void be_on_infiniband(HostConfig& host, const InfiniBandConfig& config, const LinkConfig& link) {
  host.channel_adapter = {.credits = credits_for(config, link), .sl_to_vl = config.sl_to_vl};
  host.sizes = {.overhead = kLocalOverheadBytes};
  host.notification = Notification::kPacket;  // with the BECN. IBTA A10.2.1.2
  host.cnp_priority = config.sl_to_vl[host.cnp_priority];
}

Host::Host(Domain& domain, HostConfig config, NodeIndex node, std::span<Port> ports, u32 first_port,
           const Routes& routes, const std::vector<u32>& addresses)
    : domain_(domain),
      config_(as_nic(std::move(config))),
      gate_(config_.function, config_.encryption),
      node_(node),
      ports_(make_ports(ports, first_port)),
      routes_(routes),
      addresses_(addresses),
      device_(config_.device),
      pd_(*device_.alloc_pd()),
      cq_(*device_.create_cq(kFewCQEs, nullptr)),
      keys_(*device_.memory().register_null(pd_->id, Access::kLocalWrite | Access::kRemoteWrite)),
      pcie_(config_.pcie),
      out_(domain.leaving),
      packet_(domain.arrived) {
  device_.request_notification(cq_, NotifyOn::kAnyCompletion, Time());
  if (config_.channel_adapter) channel_adapter_.emplace(*config_.channel_adapter, only_);
}

std::span<HostPort> Host::make_ports(std::span<Port> ports, u32 first_port) {
  if (ports.size() > 1) several_.resize(ports.size());
  const std::span<HostPort> made = several_.empty() ? std::span(&only_, 1) : std::span(several_);
  for (u32 i = 0; i < ports.size(); ++i) {
    made[i].port = &ports[i];
    made[i].place = first_port + i;
  }
  return made;
}

// --- what arrives

// A wait that is over now comes first if it began before the frame was sent.
void Host::wake_before_arrival() {
  const Duration on_its_way = domain_.known_since;
  on_wake();
  domain_.known_since = on_its_way;
}

// Flattened with the functions that it calls here, as on_wake().
[[gnu::flatten]] void Host::on_arrival(u32 port, FrameIndex index) {
  const HostPort& at = ports_[port];
  if (at.wake <= domain_.now && at.wake_set_at < domain_.now - domain_.known_since) [[unlikely]]
    wake_before_arrival();
  const Frame& frame = domain_.frames[index];
  if (frame.type != FrameType::kRoCE && frame.type != FrameType::kLive)
    return on_link_packet(ports_[port], index);
  if (channel_adapter_) channel_adapter_->on_received(frame);
  if (config_.receiver.drain != Rate::unlimited()) return receive_slowly(ports_[port], index);
  accept(index);
}

void Host::on_link_packet(HostPort& at, FrameIndex index) {
  const Frame& frame = domain_.frames[index];
  if (frame.type == FrameType::kPause)
    on_pause_frame(at, frame);
  else
    channel_adapter_->on_limit(frame);
  domain_.frames.give_back(index);
  transmit();
}

void Host::accept(FrameIndex index) {
  const Frame& frame = domain_.frames[index];
  if (frame.type == FrameType::kLive) [[unlikely]]
    return deliver_live(index);
  const bool has_path = config_.collects_telemetry;
  if (has_path && frame.payload_bytes != 0) seen_ = domain_.frames.path(index);
  deliver(frame, has_path ? &domain_.frames.path(index) : nullptr);
  if (channel_adapter_) free(frame);
  domain_.frames.give_back(index);
  settle();
}

void Host::fetch(u32 step, FrameIndex index) const {
  const Frame& frame = domain_.frames[index];
  if (frame.type != FrameType::kRoCE) return;
  const std::array<u8, Frame::kHeaderBytes>& h = frame.headers;
  device_.fetch(step, QPN{static_cast<u32>(h[5]) << 16 | static_cast<u32>(h[6]) << 8 | h[7]});
}

// --- a receiver that is slow

void Host::receive_slowly(HostPort& at, FrameIndex index) {
  const Frame& frame = domain_.frames[index];
  const ReceiverConfig& receiver = config_.receiver;
  if (!channel_adapter_ && received_.bytes(0) + frame.size_bytes > receiver.buffer_bytes) {
    ++domain_.counters.receiver_drops;
    return domain_.frames.give_back(index);
  }
  const u32 priority = frame.priority;
  received_.push(0, index, domain_.frames);
  if (!channel_adapter_ && received_.bytes(0) > receiver.pause_above &&
      (at.asking & bit(priority)) == 0)
    ask_to_pause(at, priority, kLongestPause);
  if (drained_at_ == Time::never()) begin_drain();
}

void Host::begin_drain() {
  const Frame& first = domain_.frames[received_.first(0)];
  drained_at_ = domain_.now + config_.receiver.drain.time_of(first.size_bytes);
  domain_.events.add({drained_at_, EventKind::kPause, ports_[0].place});
}

void Host::drain() {
  const FrameIndex index = received_.take(0, domain_.frames);
  drained_at_ = Time::never();
  if (received_.bytes(0) != 0) begin_drain();
  if (received_.bytes(0) < config_.receiver.resume_below)
    for (HostPort& at : ports_)
      for (u32 priority = 0; priority < kPriorities; ++priority)
        if ((at.asking & ~at.stuck & bit(priority)) != 0) ask_to_pause(at, priority, 0);
  accept(index);
}

// --- pauses

void Host::on_pause_frame(HostPort& at, const Frame& frame) {
  const u32 priority = frame.priority;
  if (domain_.trace != nullptr)
    domain_.trace->on_pause_received(node_, at.port->number, priority, frame.pause_quanta,
                                     domain_.now);
  if (frame.pause_quanta == 0) return at.resume(priority);
  at.pause(priority);
  if (config_.pause_expiry == PauseExpiry::kNever) return;
  at.paused_until[priority] = domain_.now + pause_time(frame.pause_quanta, at.port->rate);
  domain_.events.add({at.paused_until[priority], EventKind::kPause, at.place});
}

void Host::ask_to_pause(HostPort& at, u32 priority, u16 quanta) {
  const FrameIndex index =
      make_pause(domain_.frames, domain_.counters, priority, quanta, config_.pause_frame_bytes);
  at.acknowledgements.push(EgressQueues::kControl, index, domain_.frames);
  transmit();
  if (quanta == 0) {
    at.asking &= static_cast<u8>(~bit(priority));
    return;
  }
  at.asking |= bit(priority);
  if (config_.pause_expiry == PauseExpiry::kNever) return;
  // Half the time that it lasts: the refresh is there before it ends.
  at.ask_again[priority] = domain_.now + pause_time(quanta, at.port->rate) / 2;
  domain_.events.add({at.ask_again[priority], EventKind::kPause, at.place});
}

void Host::begin_stuck_pause(u32 port, u32 priority) {
  ports_[port].stuck |= bit(priority);
  ask_to_pause(ports_[port], priority, kLongestPause);
}

void Host::end_stuck_pause(u32 port, u32 priority) {
  ports_[port].stuck &= static_cast<u8>(~bit(priority));
  ask_to_pause(ports_[port], priority, 0);
}

void Host::on_link_down(u32 port) {
  if (channel_adapter_) return;
  HostPort& at = ports_[port];
  for (u32 priority = 0; priority < kPriorities; ++priority) at.resume(priority);
  on_routes_changed();
}

// The switch has forgotten what it was told.
void Host::on_link_up(u32 port) {
  HostPort& at = ports_[port];
  data_may_wait_ = true;
  for (u32 lane = 0; channel_adapter_ && lane < kVirtualLanes; ++lane) tell_credits(lane);
  for (u32 priority = 0; priority < kPriorities; ++priority)
    if ((at.asking & bit(priority)) != 0) ask_to_pause(at, priority, kLongestPause);
  on_routes_changed();
  wake_at(at, std::max(at.port->free_at, domain_.now));
}

// Frames that wait at a port that is down may have another port now.
void Host::on_routes_changed() {
  if (ports_.size() == 1) return;
  for (HostPort& at : ports_)
    if (!at.port->up) move_waiting(at);
  transmit();
}

// --- credits, InfiniBand's

// Frees the frame's place in the buffer.
void Host::free(const Frame& frame) {
  if (channel_adapter_->on_freed(frame)) tell_credits(frame.priority);
}

void Host::tell_credits(u32 lane) {
  ++domain_.counters.credit_updates;
  only_.acknowledgements.push(EgressQueues::kControl,
                              channel_adapter_->make_update(domain_.frames, lane), domain_.frames);
}

void Host::on_lost(u32 /*port*/, FrameIndex index) {
  const Frame& frame = domain_.frames[index];
  if (channel_adapter_ && !frame.is_for_a_neighbour()) {
    channel_adapter_->on_received(frame);
    free(frame);
  }
  domain_.frames.give_back(index);
  if (channel_adapter_) transmit();
}

void Host::on_own_timer() {
  if (drained_at_ == domain_.now) drain();
  take_from_pcie();
  for (HostPort& at : ports_) end_pauses(at);
  transmit();
}

void Host::end_pauses(HostPort& at) {
  for (u32 priority = 0; priority < kPriorities; ++priority) {
    if ((at.asking & bit(priority)) != 0 && at.ask_again[priority] == domain_.now)
      ask_to_pause(at, priority, kLongestPause);
    if ((at.paused & bit(priority)) != 0 && at.paused_until[priority] == domain_.now)
      at.resume(priority);
  }
}

void Host::deliver(const Frame& frame, const PathTelemetry* path) {
  const Bytes headers = Bytes(frame.headers).first(frame.header_bytes);
  CHECK(frame.payload_bytes == 0  // as a device has made it
            ? packet_.assign(headers)
            : packet_.assign(headers, Bytes(kNowhere, frame.payload_bytes)));
  if (frame.notifies) notify(frame, packet_.headers.bth.dest_qp);
  IngressFrame addresses;
  addresses.source = GID::from_ipv4(addresses_[frame.source]);
  addresses.destination = GID::from_ipv4(addresses_[node_]);
  addresses.traffic_class = channel_adapter_
                                ? traffic_class_of(0, has_fecn(frame) ? ECN::kCE : ECN::kECT0)
                                : frame.traffic_class;
  if (frame.payload_bytes == 0) addresses.path = path;
  addresses.transport = Bytes(kNoBytes).first(frame.header_bytes + frame.payload_bytes + kICRCSize);
  if (config_.notification == Notification::kInAcknowledgement && frame.payload_bytes == 0)
    addresses.traffic_class = config_.traffic_class;  // a mark says something of data alone
  device_.on_packet(packet_, addresses, domain_.now);
  if (frame.payload_bytes == 0) data_may_wait_ = true;
}

// As if a CNP had come just before.
void Host::notify(const Frame& frame, QPN qpn) {
  PacketView cnp;
  cnp.headers.bth.opcode.service = Service::kCNP;
  cnp.headers.bth.dest_qp = qpn;
  IngressFrame addresses;
  addresses.source = GID::from_ipv4(addresses_[frame.source]);
  addresses.destination = GID::from_ipv4(addresses_[node_]);
  device_.on_packet(cnp, addresses, domain_.now);
}

// --- what the device has to say after any call

void Host::settle() {
  fetch_acknowledgements();
  collect();
  arm_timer();
  transmit();
}

void Host::arm_timer() {
  const Time timer = device_.next_timer();
  if (timer >= timer_) return;
  timer_ = timer;
  domain_.events.add({timer, EventKind::kDeviceTimer, ports_[0].place});
}

void Host::on_device_timer() {
  timer_ = Time::never();
  device_.on_timer(domain_.now);
  data_may_wait_ = true;
  settle();
}

void Host::collect() {
  while (device_.poll_completion_event()) {
    std::array<CQE, 16> cqes;
    u32 count = 0;
    do {
      count = device_.poll_cq(cq_, cqes);
      for (const CQE& cqe : std::span(cqes).first(count)) {
        if (!pcie_.delays_completion()) {
          take(cqe);
          continue;
        }
        const Time at = pcie_.complete(cqe, domain_.now);
        domain_.events.add({at, EventKind::kPause, ports_[0].place});
      }
    } while (count == cqes.size());
    device_.request_notification(cq_, NotifyOn::kAnyCompletion, domain_.now);
  }
}

void Host::fetch_acknowledgements() {
  while (device_.poll_acknowledgement(domain_.now, out_)) {
    const bool cnp = is_cnp(out_);
    Open& open = connections_[index_of(out_.source_qp)];
    if (cnp && config_.notification == Notification::kInAcknowledgement) {
      open.owes_notification = true;
      continue;
    }
    const FrameIndex index = domain_.frames.take();
    Frame& frame = domain_.frames[index];
    fill(frame);
    frame.notifies = std::exchange(open.owes_notification, false);
    frame.obeys_pause = config_.acknowledgements_obey_pause;
    if (config_.collects_telemetry) domain_.frames.path(index) = seen_;
    if (cnp) frame.priority = config_.cnp_priority;
    port_for(frame).acknowledgements.push(
        frame.obeys_pause ? frame.priority : EgressQueues::kControl, index, domain_.frames);
  }
}

// Fills the frame from the packet that was polled.
void Host::fill(Frame& frame) {
  const Connection& connection = connection_of(out_.source_qp);
  frame.type = FrameType::kRoCE;
  frame.source = node_;
  frame.destination = connection.peer;
  frame.source_port = connection.source_port != 0 ? connection.source_port : out_.udp_source_port;
  frame.destination_port = connection.destination_port != 0 ? connection.destination_port : 4791;
  frame.size_bytes = size_of_frame();
  frame.payload_bytes = static_cast<u16>(out_.payload.size_bytes);
  frame.priority = connection.priority;
  frame.traffic_class = out_.traffic_class;
  frame.header_bytes = out_.headers_size;
  frame.obeys_pause = true;
  frame.notifies = false;
  frame.is_judged = false;
  CHECK(out_.headers_size <= Frame::kHeaderBytes);
  std::copy_n(out_.headers.begin(), Frame::kHeaderBytes, frame.headers.begin());
}

u16 Host::size_of_frame() const {
  const FrameSizes& sizes = config_.sizes;
  const u32 payload = out_.payload.size_bytes;
  if (payload == 0 && sizes.acknowledgement != 0) return sizes.acknowledgement;
  const std::size_t packet = sizes.counts_headers ? out_.transport_size() : payload;
  return static_cast<u16>(packet + sizes.overhead);
}

// --- the ports

// Returns a port that is up and leads to the peer: by the flow's hash over all ports if that one is
// usable, else by the hash over the usable ones.
u16 Host::number_by_hash(const Frame& frame) const {
  const u32 hash = flow_hash({.source_address = addresses_[node_],
                              .destination_address = addresses_[frame.destination],
                              .source_port = frame.source_port,
                              .destination_port = frame.destination_port},
                             node_);
  const u32 count = static_cast<u32>(ports_.size());
  std::array<u16, Topology::kMostLinksOfHost> usable{};
  u32 usable_count = 0;
  for (const u16 port : routes_.ports(node_, frame.destination)) {
    if (!ports_[port].port->up) continue;
    if (port == hash % count) return port;
    usable[usable_count++] = port;
  }
  return usable_count == 0 ? static_cast<u16>(hash % count) : usable[hash / count % usable_count];
}

HostPort& Host::port_by_hash(const Frame& frame) {
  const u16 number = number_by_hash(frame);
  if (path_log_ != nullptr) [[unlikely]]
    path_log_->note(frame, number);
  return ports_[number];
}

// Moves the frames to the ports that they may take now.
void Host::move_waiting(HostPort& from) {
  for (EgressQueues HostPort::*const queues : {&HostPort::acknowledgements, &HostPort::parked})
    for (u32 queue = 0; queue <= EgressQueues::kControl; ++queue)
      for (u32 bytes = (from.*queues).bytes(queue); bytes != 0;) {
        const FrameIndex index = (from.*queues).take(queue, domain_.frames);
        const Frame& frame = domain_.frames[index];
        bytes -= frame.size_bytes;
        HostPort& to = frame.type == FrameType::kPause ? from : port_for(frame);
        (to.*queues).push(queue, index, domain_.frames);
      }
}

void Host::wake_at(HostPort& at, Time when) {
  if (when >= at.wake) return;
  at.wake = when;
  at.wake_set_at = domain_.now - ArrivalRank::seniority(domain_.known_since);
  domain_.events.add({when, EventKind::kPortWake, at.place});
}

[[gnu::flatten]] void Host::on_wake() {
  for (HostPort& at : ports_) {
    if (domain_.now < at.wake) continue;
    at.wake = Time::never();
    domain_.known_since = std::max(domain_.known_since, domain_.now - at.wake_set_at);
  }
  // Also when it is not due yet: a wake for then may have been left out in favour of this one.
  if (device_.next_send() != Time::never()) data_may_wait_ = true;
  transmit();
}

// While one port polls the device, packets for earlier ports may be parked there.
void Host::transmit() {
  if (several_.empty()) [[likely]]
    return transmit(only_);
  for (HostPort& at : several_) transmit(at);
  for (HostPort& at : several_)
    if (at.parked.may_send()) transmit(at);
}

void Host::transmit(HostPort& at) {
  if (!at.port->up) return;
  if (domain_.now >= at.port->free_at && domain_.now >= gate_.next()) {
    const FrameIndex index = at.acknowledgements.pop({.strict = 0xff}, domain_.frames);
    if (index != kNoFrame)
      put_on_wire(at, index);
    else if (!data_may_go(at) || !transmit_data(at))
      return note_wait();
  }
  if (at.acknowledgements.may_send() || data_may_go(at) || (channel_adapter_ && at.paused != 0))
    wake_at(at, std::max(at.port->free_at, gate_.next()));
}

void Host::put_on_wire(HostPort& at, FrameIndex index) {
  at.sent_bytes += domain_.frames[index].size_bytes;
  if (channel_adapter_) channel_adapter_->on_sent(domain_.frames[index], domain_.now);
  gate_.on_sent(domain_.frames[index].size_bytes, domain_.now);
  send(domain_, *at.port, index);
}

void Host::note_wait() {
  if (!channel_adapter_) return;
  const bool waits = !only_.parked.empty() || !only_.acknowledgements.empty() ||
                     (data_may_wait_ && (data_priorities_ & only_.paused) != 0);
  channel_adapter_->note_wait(waits, domain_.now);
}

// Returns false if the device has nothing to send now.
bool Host::transmit_data(HostPort& at) {
  if (const FrameIndex index = at.parked.pop({}, domain_.frames); index != kNoFrame) {
    if (domain_.frames[index].type == FrameType::kLive) [[unlikely]]
      note_left_live(index);
    else
      release(domain_.frames[index]);
    put_on_wire(at, index);
    return true;
  }
  while (data_may_wait_ && device_.poll_frame(domain_.now, out_)) {
    const FrameIndex index = domain_.frames.take();
    Frame& frame = domain_.frames[index];
    fill(frame);
    if (config_.collects_telemetry) domain_.frames.path(index).count = 0;
    HostPort& its = port_for(frame);
    if (&its != &at || (at.paused & bit(frame.priority)) != 0) {
      park(its, index);
      continue;
    }
    put_on_wire(at, index);
    return true;
  }
  data_may_wait_ = false;
  arm_timer();  // that what was sent since is acknowledged
  if (device_.next_send() != Time::never()) wake_at(at, device_.next_send());
  return false;
}

// The frame waits, and its QP sends no more.
void Host::park(HostPort& at, FrameIndex index) {
  Frame& frame = domain_.frames[index];
  Open& open = connections_[index_of(out_.source_qp)];
  open.paused = true;
  device_.pause(open.qp);
  frame.ingress = static_cast<u16>(index_of(out_.source_qp));
  at.parked.push(frame.priority, index, domain_.frames);
}

// The QP whose frame waited, if it is still that one.
void Host::release(const Frame& frame) {
  Open& open = connections_[frame.ingress];
  if (!open.paused) return;
  open.paused = false;
  device_.resume(open.qp);
  data_may_wait_ = true;
}

// --- packets of live processes

void Host::send_live(LivePacket packet) {
  const FrameIndex index = domain_.frames.take();
  Frame& frame = domain_.frames[index];
  fill_live(frame, packet);
  const bool is_data = packet.kind == LivePacket::Kind::kData;
  domain_.frames.live(index) = std::move(packet);
  HostPort& at = port_for(frame);
  if (is_data)
    at.parked.push(frame.priority, index, domain_.frames);
  else
    at.acknowledgements.push(frame.obeys_pause ? frame.priority : EgressQueues::kControl, index,
                             domain_.frames);
  transmit();
}

// Headers: as much of the packet as a frame has room for. It has a BTH at least.
void Host::fill_live(Frame& frame, const LivePacket& packet) const {
  const std::size_t transport = packet.bytes.size() - kICRCSize;
  const std::size_t headers = std::min<std::size_t>(transport, Frame::kHeaderBytes);
  frame.type = FrameType::kLive;
  frame.source = packet.source;
  frame.destination = packet.destination;
  frame.source_port = packet.udp_source_port;
  frame.destination_port = channel_adapter_ ? packet.dlid : 4791;
  frame.size_bytes = static_cast<u16>(transport + config_.sizes.overhead);
  frame.payload_bytes = static_cast<u16>(transport - headers);
  frame.priority =
      packet.kind == LivePacket::Kind::kNotification ? config_.cnp_priority : packet.priority;
  frame.traffic_class = packet.traffic_class;
  frame.header_bytes = static_cast<u8>(headers);
  frame.obeys_pause = packet.kind == LivePacket::Kind::kData || config_.acknowledgements_obey_pause;
  frame.notifies = false;
  frame.is_judged = false;
  std::copy_n(packet.bytes.begin(), headers, frame.headers.begin());
}

void Host::deliver_live(FrameIndex index) {
  const Frame& frame = domain_.frames[index];
  LivePacket& packet = arrived_live_.emplace_back(std::move(domain_.frames.live(index)));
  packet.traffic_class = frame.traffic_class;
  packet.destination = node_;  // for a multicast packet one of many
  packet.arrived = domain_.now;
  if (channel_adapter_) free(frame);
  domain_.frames.give_back(index);
  if (channel_adapter_) transmit();
}

void Host::note_left_live(FrameIndex index) {
  const LivePacket& packet = domain_.frames.live(index);
  left_live_.push_back({packet.owner, static_cast<u32>(packet.bytes.size())});
}

}  // namespace verbena::fabric
