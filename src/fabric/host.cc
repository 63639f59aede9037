#include "fabric/host.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "device/port/source_port.h"
#include "fabric/ecmp.h"
#include "fabric/infiniband/packets.h"
#include "fabric/pause_frame.h"
#include "wire/eth/ecn.h"
#include "wire/ib/packet.h"

namespace verbena::fabric {
namespace {

constexpr u32 kFewCQEs = 16, kMostCQEs = 4096;
constexpr u64 kOfConnection = u64{1} << 32;                          // in a wr_id: not of a flow
constexpr std::array<u8, TransmissionTimes::kMaxOctets> kNoBytes{};  // frames: counted, not read
constexpr const u8* kNowhere = nullptr;                              // and payload, not kept either

void must(Status status) { CHECK(status == Status::kOk); }

bool is_cnp(const EgressFrame& frame) {
  return frame.headers[0] >> 5 == static_cast<u8>(Service::kCNP);
}

QPModify to_state(QPState state) {
  QPModify change;
  change.state = state;
  return change.set(QPField::kState);
}

// A port takes frames one by one, so QPs take turns so, and acknowledgements wait for no data.
HostConfig as_nic(HostConfig config) {
  config.device.egress = {.run_packets = 1, .acknowledgements = AcknowledgementOrder::kFirst};
  return config;
}

}  // namespace

void be_on_infiniband(HostConfig& host, const InfiniBandConfig& config, const LinkConfig& link) {
  host.channel_adapter = {.credits = credits_for(config, link), .sl_to_vl = config.sl_to_vl};
  host.sizes = {.overhead = kLocalOverheadOctets};
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
      out_(domain.leaving),
      packet_(domain.arrived) {
  device_.request_notification(cq_, NotifyOn::kAnyCompletion, Time());
  if (config_.channel_adapter) credits_.emplace(config_.channel_adapter->credits);
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

// In one function with what it calls here, as on_wake().
[[gnu::flatten]] void Host::on_arrival(u32 port, FrameIndex index) {
  const HostPort& at = ports_[port];
  if (at.wake <= domain_.now && at.wake_set_at < domain_.now - domain_.known_since) [[unlikely]]
    wake_before_arrival();
  const Frame& frame = domain_.frames[index];
  if (frame.type != FrameType::kRoCE && frame.type != FrameType::kLive)
    return on_link_packet(ports_[port], index);
  if (credits_) credits_->on_received(frame.priority, frame.size_octets);
  if (config_.receiver.drain != Rate::unlimited()) return receive_slowly(ports_[port], index);
  accept(index);
}

void Host::on_link_packet(HostPort& at, FrameIndex index) {
  const Frame& frame = domain_.frames[index];
  if (frame.type == FrameType::kPause)
    on_pause_frame(at, frame);
  else
    on_flow_control(frame);
  domain_.frames.give_back(index);
  transmit();
}

void Host::accept(FrameIndex index) {
  const Frame& frame = domain_.frames[index];
  if (frame.type == FrameType::kLive) [[unlikely]]
    return deliver_live(index);
  const bool has_path = config_.collects_telemetry;
  if (has_path && frame.payload_octets != 0) seen_ = domain_.frames.path(index);
  deliver(frame, has_path ? &domain_.frames.path(index) : nullptr);
  if (credits_) free(frame);
  domain_.frames.give_back(index);
  settle();
}

void Host::fetch(u32 step, FrameIndex index) const {
  const Frame& frame = domain_.frames[index];
  if (frame.type != FrameType::kRoCE) return;
  const std::array<u8, Frame::kHeaderOctets>& h = frame.headers;
  device_.fetch(step, QPN{static_cast<u32>(h[5]) << 16 | static_cast<u32>(h[6]) << 8 | h[7]});
}

// --- a receiver that is slow

void Host::receive_slowly(HostPort& at, FrameIndex index) {
  const Frame& frame = domain_.frames[index];
  const ReceiverConfig& receiver = config_.receiver;
  if (!credits_ && received_.octets(0) + frame.size_octets > receiver.buffer_octets) {
    ++domain_.counters.receiver_drops;
    return domain_.frames.give_back(index);
  }
  const u32 priority = frame.priority;
  received_.push(0, index, domain_.frames);
  if (!credits_ && received_.octets(0) > receiver.pause_above && (at.asking & bit(priority)) == 0)
    ask_to_pause(at, priority, kLongestPause);
  if (drained_at_ == Time::never()) begin_drain();
}

void Host::begin_drain() {
  const Frame& first = domain_.frames[received_.first(0)];
  drained_at_ = domain_.now + config_.receiver.drain.time_of(first.size_octets);
  domain_.events.add({drained_at_, EventKind::kPause, ports_[0].place});
}

void Host::drain() {
  const FrameIndex index = received_.take(0, domain_.frames);
  drained_at_ = Time::never();
  if (received_.octets(0) != 0) begin_drain();
  if (received_.octets(0) < config_.receiver.resume_below)
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
      make_pause(domain_.frames, domain_.counters, priority, quanta, config_.pause_frame_octets);
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
  if (credits_) return;
  HostPort& at = ports_[port];
  for (u32 priority = 0; priority < kPriorities; ++priority) at.resume(priority);
  on_routes_changed();
}

// The switch has forgotten what it was told.
void Host::on_link_up(u32 port) {
  HostPort& at = ports_[port];
  data_may_wait_ = true;
  for (u32 lane = 0; credits_ && lane < kVirtualLanes; ++lane) tell_credits(lane);
  for (u32 priority = 0; priority < kPriorities; ++priority)
    if ((at.asking & bit(priority)) != 0) ask_to_pause(at, priority, kLongestPause);
  on_routes_changed();
  wake_at(at, std::max(at.port->free_at, domain_.now));
}

// What waits at a port that is down may have another now.
void Host::on_routes_changed() {
  if (ports_.size() == 1) return;
  for (HostPort& at : ports_)
    if (!at.port->up) move_waiting(at);
  transmit();
}

// --- credits, InfiniBand's

void Host::on_flow_control(const Frame& frame) {
  credits_->on_limit(frame.priority, credit_limit_of(frame));
  if ((only_.paused & bit(frame.priority)) != 0 && credits_->may_send(frame.priority))
    only_.resume(frame.priority);
}

// For a packet that goes.
void Host::take_credits(const Frame& frame) {
  if (frame.is_for_a_neighbour()) return;
  sent_packets_.add(frame.size_octets, cast_of(frame));
  credits_->on_sent(frame.priority, frame.size_octets);
  if (!credits_->may_send(frame.priority)) only_.pause(frame.priority);
  if (waits_since_ == Time::never()) return;
  waited_ = waited_ + (domain_.now - std::exchange(waits_since_, Time::never()));
}

// Its place in the buffer.
void Host::free(const Frame& frame) {
  credits_->on_freed(frame.priority, frame.size_octets);
  if (credits_->update_is_due(frame.priority)) tell_credits(frame.priority);
}

void Host::tell_credits(u32 lane) {
  ++domain_.counters.credit_updates;
  only_.acknowledgements.push(EgressQueues::kControl,
                              make_flow_control(domain_.frames, lane, *credits_), domain_.frames);
}

void Host::on_lost(u32 /*port*/, FrameIndex index) {
  const Frame& frame = domain_.frames[index];
  if (credits_ && !frame.is_for_a_neighbour()) {
    credits_->on_received(frame.priority, frame.size_octets);
    free(frame);
  }
  domain_.frames.give_back(index);
  if (credits_) transmit();
}

Duration Host::waited_for_credits(Time now) const {
  if (waits_since_ == Time::never()) return waited_;
  return waited_ + (now - waits_since_);
}

void Host::on_own_timer() {
  if (drained_at_ == domain_.now) drain();
  post_due();
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
  const Bytes headers = Bytes(frame.headers).first(frame.header_octets);
  CHECK(frame.payload_octets == 0  // as a device has made it
            ? packet_.assign(headers)
            : packet_.assign(headers, Bytes(kNowhere, frame.payload_octets)));
  if (frame.notifies) notify(frame, packet_.headers.bth.dest_qp);
  IngressFrame addresses;
  addresses.source = GID::from_ipv4(addresses_[frame.source]);
  addresses.destination = GID::from_ipv4(addresses_[node_]);
  addresses.traffic_class =
      credits_ ? traffic_class_of(0, has_fecn(frame) ? ECN::kCE : ECN::kECT0) : frame.traffic_class;
  if (frame.payload_octets == 0) addresses.path = path;
  addresses.transport =
      Bytes(kNoBytes).first(frame.header_octets + frame.payload_octets + kICRCSize);
  if (config_.notification == Notification::kInAcknowledgement && frame.payload_octets == 0)
    addresses.traffic_class = config_.traffic_class;  // a mark says something of data alone
  device_.on_packet(packet_, addresses, domain_.now);
  if (frame.payload_octets == 0) data_may_wait_ = true;
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
        if (config_.pcie.completion == Duration{}) {
          take(cqe);
          continue;
        }
        completions_.push_back({domain_.now + config_.pcie.completion, cqe});
        domain_.events.add({completions_.back().at, EventKind::kPause, ports_[0].place});
      }
    } while (count == cqes.size());
    device_.request_notification(cq_, NotifyOn::kAnyCompletion, domain_.now);
  }
}

// A message that fails takes the rest of its QP's with it.
void Host::take_failure(const CQE& cqe) {
  Open& open = connections_[index_of(cqe.qp)];
  if (std::exchange(open.failed, true) || (cqe.wr_id & kOfConnection) != 0) return;
  if (cqe.op != CompletionOp::kReceiveRDMAWithImmediate && !open.expects)
    failed_.push_back(static_cast<u32>(cqe.wr_id));
}

void Host::take(const CQE& cqe) {
  if (cqe.status != WQEStatus::kSuccess) return take_failure(cqe);
  const u32 number = static_cast<u32>(cqe.wr_id);
  if (cqe.op == CompletionOp::kReceiveRDMAWithImmediate) {
    expect(static_cast<EndNumber>(index_of(cqe.qp)), 1, number);
    messages_.push_back({.connection = number, .word = cqe.immediate, .arrived = true});
  } else if ((cqe.wr_id & kOfConnection) != 0) {
    messages_.push_back({.connection = number});
  } else {
    finished_.push_back(number);
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

// From what was polled.
void Host::fill(Frame& frame) {
  const Connection& connection = connection_of(out_.source_qp);
  frame.type = FrameType::kRoCE;
  frame.source = node_;
  frame.destination = connection.peer;
  frame.source_port = connection.source_port != 0 ? connection.source_port : out_.udp_source_port;
  frame.destination_port = connection.destination_port != 0 ? connection.destination_port : 4791;
  frame.size_octets = size_of_frame();
  frame.payload_octets = static_cast<u16>(out_.payload.size_bytes);
  frame.priority = connection.priority;
  frame.traffic_class = out_.traffic_class;
  frame.header_octets = out_.headers_size;
  frame.obeys_pause = true;
  frame.notifies = false;
  frame.is_judged = false;
  CHECK(out_.headers_size <= Frame::kHeaderOctets);
  std::copy_n(out_.headers.begin(), Frame::kHeaderOctets, frame.headers.begin());
}

u16 Host::size_of_frame() const {
  const FrameSizes& sizes = config_.sizes;
  const u32 payload = out_.payload.size_bytes;
  if (payload == 0 && sizes.acknowledgement != 0) return sizes.acknowledgement;
  const std::size_t packet = sizes.counts_headers ? out_.transport_size() : payload;
  return static_cast<u16>(packet + sizes.overhead);
}

// --- the ports

// Of those that are up and lead to the peer: by the flow's hash, of all if that one will do.
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

// To the ports that the frames may take now.
void Host::move_waiting(HostPort& from) {
  for (EgressQueues HostPort::*const queues : {&HostPort::acknowledgements, &HostPort::parked})
    for (u32 queue = 0; queue <= EgressQueues::kControl; ++queue)
      for (u32 octets = (from.*queues).octets(queue); octets != 0;) {
        const FrameIndex index = (from.*queues).take(queue, domain_.frames);
        const Frame& frame = domain_.frames[index];
        octets -= frame.size_octets;
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

// While one port asks the device, packets for those before it may come forth.
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
  if (at.acknowledgements.may_send() || data_may_go(at) || (credits_ && at.paused != 0))
    wake_at(at, std::max(at.port->free_at, gate_.next()));
}

void Host::put_on_wire(HostPort& at, FrameIndex index) {
  at.sent_octets += domain_.frames[index].size_octets;
  if (credits_) take_credits(domain_.frames[index]);
  gate_.on_sent(domain_.frames[index].size_octets, domain_.now);
  send(domain_, *at.port, index);
}

// Nothing may go. What waits is known for sure when credits have come: then it goes, or there was
// nothing.
void Host::note_wait() {
  if (!credits_) return;
  const bool waits = !only_.parked.empty() || !only_.acknowledgements.empty() ||
                     (data_may_wait_ && (data_priorities_ & only_.paused) != 0);
  if (!waits)
    waits_since_ = Time::never();
  else if (waits_since_ == Time::never())
    waits_since_ = domain_.now;
}

// False: the device has nothing to send now.
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
  const std::size_t transport = packet.octets.size() - kICRCSize;
  const std::size_t headers = std::min<std::size_t>(transport, Frame::kHeaderOctets);
  frame.type = FrameType::kLive;
  frame.source = packet.source;
  frame.destination = packet.destination;
  frame.source_port = packet.udp_source_port;
  frame.destination_port = credits_ ? packet.dlid : 4791;
  frame.size_octets = static_cast<u16>(transport + config_.sizes.overhead);
  frame.payload_octets = static_cast<u16>(transport - headers);
  frame.priority =
      packet.kind == LivePacket::Kind::kNotification ? config_.cnp_priority : packet.priority;
  frame.traffic_class = packet.traffic_class;
  frame.header_octets = static_cast<u8>(headers);
  frame.obeys_pause = packet.kind == LivePacket::Kind::kData || config_.acknowledgements_obey_pause;
  frame.notifies = false;
  frame.is_judged = false;
  std::copy_n(packet.octets.begin(), headers, frame.headers.begin());
}

void Host::deliver_live(FrameIndex index) {
  const Frame& frame = domain_.frames[index];
  LivePacket& packet = arrived_live_.emplace_back(std::move(domain_.frames.live(index)));
  packet.traffic_class = frame.traffic_class;
  packet.destination = node_;  // of a multicast packet one of many
  packet.arrived = domain_.now;
  if (credits_) free(frame);
  domain_.frames.give_back(index);
  if (credits_) transmit();
}

void Host::note_left_live(FrameIndex index) {
  const LivePacket& packet = domain_.frames.live(index);
  left_live_.push_back({packet.owner, static_cast<u32>(packet.octets.size())});
}

// --- flows

EndNumber Host::create_end(u32 sends, u32 receives) {
  const Result<QueuePair*> qp = device_.create_qp({.type = QPType::kRC,
                                                   .pd = pd_,
                                                   .send_cq = cq_,
                                                   .receive_cq = cq_,
                                                   .send = {.depth = sends, .max_sge = 1},
                                                   .receive = {.depth = receives, .max_sge = 1}});
  CHECK(qp.has_value());
  const std::size_t index = index_of(number_of(*qp));
  if (index >= connections_.size()) connections_.resize(index + 1);
  connections_[index] = {};
  connections_[index].qp = *qp;
  connections_[index].completions = sends + receives;
  completions_at_most_ += sends + receives;
  make_room_for_completions();
  return static_cast<EndNumber>(index);
}

// The CQ is as long as it has to be: most hosts of a large network have few QPs, and what they keep
// lies the closer together.
void Host::make_room_for_completions() {
  const u32 needed = std::min(kMostCQEs, std::bit_ceil(completions_at_most_));
  if (needed > device_.capacity_of(cq_)) must(device_.resize_cq(cq_, needed));
}

u16 Host::source_port_of(EndNumber end) const {
  const Connection& connection = connections_[end].connection;
  if (connection.source_port != 0) return connection.source_port;
  const u32 first = config_.device.first_qpn.value;
  return udp_source_port(config_.device, {}, QPN{first + end}, QPN{first + connection.peer_end});
}

void Host::connect(EndNumber end, const Connection& connection) {
  QueuePair* const qp = connections_[end].qp;
  connections_[end].connection = connection;
  u8& priority = connections_[end].connection.priority;
  if (config_.channel_adapter) priority = config_.channel_adapter->sl_to_vl[priority];
  data_priorities_ |= bit(priority);

  QPModify init = to_state(QPState::kInit);
  init.remote_access = Access::kRemoteWrite;
  init.set(QPField::kPKeyIndex).set(QPField::kPort).set(QPField::kAccessFlags);
  must(device_.modify_qp(qp, init, domain_.now));

  QPModify rtr = to_state(QPState::kRTR);
  rtr.path.source = GID::from_ipv4(addresses_[node_]);
  rtr.path.destination = GID::from_ipv4(addresses_[connection.peer]);
  rtr.path.traffic_class = config_.channel_adapter ? connection.priority : config_.traffic_class;
  rtr.path_mtu = config_.device.active_mtu;
  rtr.dest_qp = QPN{config_.device.first_qpn.value + connection.peer_end};
  rtr.set(QPField::kAddressVector).set(QPField::kPathMTU).set(QPField::kDestQPN);
  rtr.set(QPField::kRQPSN).set(QPField::kMaxDestRdAtomic).set(QPField::kMinRNRTimer);
  must(device_.modify_qp(qp, rtr, domain_.now));

  QPModify rts = to_state(QPState::kRTS);
  rts.ack_timeout = config_.ack_timeout;
  rts.retry_count = config_.retry_count;
  rts.rnr_retry_count = 7;  // for ever
  rts.set(QPField::kSQPSN).set(QPField::kTimeout).set(QPField::kRetryCount);
  rts.set(QPField::kRNRRetry).set(QPField::kMaxRdAtomic);
  must(device_.modify_qp(qp, rts, domain_.now));
}

void Host::destroy_end(EndNumber end) {
  connections_[end].paused = false;
  completions_at_most_ -= connections_[end].completions;
  must(device_.destroy_qp(connections_[end].qp));
}

QPN Host::peer_of(QPN qpn) const {
  const std::size_t index = index_of(qpn);
  if (index >= connections_.size()) return {};
  return QPN{config_.device.first_qpn.value + connections_[index].connection.peer_end};
}

std::optional<Rate> Host::rate_of(EndNumber end, Time now) const {
  std::optional<CongestionControl> control = device_.congestion_of(connections_[end].qp);
  return control ? std::optional(control->rate(now)) : std::nullopt;
}

Repairs Host::repairs() const {
  const EngineCounters counters = device_.counters().transport;
  return {.retransmissions = counters.retransmitted_packets,
          .timeouts = counters.local_ack_timeout_err};
}

u32 Host::packet_octets() const {
  const DeviceConfig& device = config_.device;
  return device.packet_octets != 0 ? device.packet_octets : bytes(device.active_mtu);
}

// Whole packets in all but the last.
u32 Host::messages_of(u64 octets) const {
  const u32 most = kMessageOctets / packet_octets() * packet_octets();
  return static_cast<u32>(std::max<u64>(1, (octets + most - 1) / most));
}

void Host::write(EndNumber end, u64 octets, u32 flow) {
  const u32 most = kMessageOctets / packet_octets() * packet_octets();
  do {
    const u32 length = static_cast<u32>(std::min<u64>(octets, most));
    octets -= length;
    const SGE sge{.address = 0, .length = length, .l_key = keys_.l_key};
    SendWR wr;
    wr.wr_id = flow;
    wr.op = SendOp::kRDMAWrite;
    wr.signaled = octets == 0;
    wr.sg_list = {&sge, 1};
    wr.r_key = connections_[end].connection.peer_key;
    post(wr, connections_[end].qp);
  } while (octets != 0);
  post_due();
}

void Host::post(const SendWR& wr, QueuePair* qp) {
  const Time at = domain_.now + config_.pcie.posting;
  postings_.push_back({.at = at, .qp = qp, .wr = wr, .sge = {}});
  if (!wr.sg_list.empty()) postings_.back().sge = wr.sg_list[0];
  if (config_.pcie.posting != Duration{})
    domain_.events.add({at, EventKind::kPause, ports_[0].place});
}

// What has reached the NIC, and the program.
void Host::post_due() {
  for (; !completions_.empty() && completions_.front().at <= domain_.now; completions_.pop_front())
    take(completions_.front().cqe);
  if (postings_.empty() || postings_.front().at > domain_.now) return;
  for (; !postings_.empty() && postings_.front().at <= domain_.now; postings_.pop_front()) {
    Posting& posting = postings_.front();
    if (!posting.wr.sg_list.empty()) posting.wr.sg_list = {&posting.sge, 1};
    CHECK(device_.post_send(posting.qp, posting.wr, domain_.now) == PostError::kOk);
  }
  data_may_wait_ = true;
  settle();
}

// --- messages

void Host::expect(EndNumber end, u32 messages, u32 connection) {
  connections_[end].expects = true;
  RecvWR wr;
  wr.wr_id = connection;
  for (u32 i = 0; i < messages; ++i)
    CHECK(device_.post_receive(connections_[end].qp, wr, domain_.now) == PostError::kOk);
}

void Host::send_message(EndNumber end, u32 octets, u32 connection, u32 word) {
  const SGE sge{.address = 0, .length = octets, .l_key = keys_.l_key};
  SendWR wr;
  wr.wr_id = connection | kOfConnection;
  wr.op = SendOp::kRDMAWriteWithImmediate;
  wr.signaled = true;
  wr.immediate = word;
  if (octets != 0) wr.sg_list = {&sge, 1};
  wr.r_key = connections_[end].connection.peer_key;
  post(wr, connections_[end].qp);
  post_due();
}

}  // namespace verbena::fabric
