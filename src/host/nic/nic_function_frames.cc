// The frames of a virtual function, from its programs and to them.
#include <algorithm>
#include <bit>
#include <cstring>

#include "host/nic/nic_function.h"
#include "host/os/clock.h"
#include "host/sharing/qpn_slot.h"

namespace verbena::host {
namespace {

constexpr u64 kLeastOfTurn = 256;  // a turn of a stream costs the NIC as much time as so many bytes
constexpr u32 kBatchOfReceive = 256;  // frames of one program in a round

// Lets a request go with the acknowledgement before it in one datagram call, as in-process.
Urgency urgency_of(std::span<const u8> transport) {
  constexpr Opcode kAcknowledgement{Service::kRC, Op::kAcknowledge};
  const std::optional<BTH> bth = BTH::decode(transport);
  return bth && bth->opcode == kAcknowledgement ? Urgency::kWithReply : Urgency::kNow;
}

// The lowest class of a set that is not empty.
u32 lowest_of(u32 classes) { return static_cast<u32>(std::countr_zero(classes)); }

// `transport`: BTH .. end of pad, or its beginning. The payload may have more.
EgressFrame frame_of(const FrameRing::Header& header, const GID& from, const GID& to,
                     std::span<const u8> transport) {
  EgressFrame frame;
  frame.source = from;
  frame.destination = to;
  frame.udp_source_port = header.udp_source_port;
  frame.traffic_class = header.traffic_class;
  frame.hop_limit = header.hop_limit;
  frame.urgency = urgency_of(transport);
  frame.headers_size = BTH::kSize;
  std::ranges::copy(transport.first(BTH::kSize), frame.headers.begin());
  frame.payload.add(transport.subspan(BTH::kSize));
  return frame;
}

}  // namespace

// --- from the programs

u64 NICFunction::send(u64 bytes, Time now, NICVLANs& vlans) {
  u64 sent = 0;
  for (u32 left = pending(); left != 0 && sent < bytes;) {
    const u32 highest = static_cast<u32>(std::bit_width(left)) - 1;
    sent += send_of_class(highest, bytes - sent, now, vlans);
    left &= ~(1u << highest);
  }
  return sent;
}

// Their packets have the DSCP 0.
u32 NICFunction::class_of_streams() const { return config_.classes.class_of(0); }

u64 NICFunction::send_streams(u64 bytes, Time now) {
  u64 sent = 0;
  TokenBucket& max_of_class = max_of_class_[class_of_streams()];
  while (sent < bytes && max_.may_send(now) && max_of_class.may_send(now) && streams_->can_send()) {
    const u64 moved = streams_->send(bytes - sent, now);
    max_.on_sent(moved);
    max_of_class.on_sent(moved);
    guaranteed_.on_sent(moved);
    sent += std::max(moved, kLeastOfTurn);
  }
  return sent;
}

// The streams have a turn as one of the programs has.
u64 NICFunction::send_of_class(u32 traffic_class, u64 bytes, Time now, NICVLANs& vlans) {
  u64 sent = 0;
  for (std::size_t i = 0; i <= programs_.size() && sent < bytes; ++i) {
    next_program_ = (next_program_ + 1) % (programs_.size() + 1);
    if (next_program_ < programs_.size())
      sent += send_of(*programs_[next_program_], traffic_class, bytes - sent, now, vlans);
    else if (traffic_class == class_of_streams())
      sent += send_streams(bytes - sent, now);
  }
  return sent;
}

u64 NICFunction::send_of(Program& program, u32 traffic_class, u64 bytes, Time now,
                         NICVLANs& vlans) {
  u64 sent = 0;
  FrameRingReader::Record record;
  while (sent < bytes && max_.may_send(now) && max_of_class_[traffic_class].may_send(now) &&
         program.from_program->poll_and_keep(traffic_class, record))
    sent += send_record(program, traffic_class, record, now, vlans);
  return sent;
}

// The head of the packet is copied before it is looked at. The rest is sent from the ring: a
// program that changes it meanwhile sends a packet with a wrong ICRC, as it could anyway. Bytes are
// counted for those that are refused, too: they cost the NIC time. The class is the packet's,
// whichever ring the program has chosen: so no program exceeds the rate of a class.
u64 NICFunction::send_record(Program& program, u32 traffic_class,
                             const FrameRingReader::Record& record, Time now, NICVLANs& vlans) {
  const std::size_t size = record.body.size();
  if (size < BTH::kSize + kICRCSize || size > FrameRing::kMaxBody) {
    ++counters_.refused_sent[static_cast<std::size_t>(NICRefusal::kMalformed)];
    return FrameRing::kMaxBody;
  }
  const bool is_whole = size <= kWholeBytes || config_.vlan;  // in a VLAN others here may get it
  const std::size_t copied = is_whole ? size : kHeadBytes;
  if (kStaging - staged_ < copied) flush();
  const std::span<u8> copy = std::span(*staging_).subspan(staged_, copied);
  std::ranges::copy(record.body.first(copied), copy.begin());
  const Bytes transport = is_whole ? copy.first(size - kICRCSize) : Bytes(copy);
  const auto& [source, destination] = record.addresses;
  const GID from = source, to = destination;
  const NICRefusal refusal = filter_.check_sent(from, to, transport, program.udp->slot());
  if (refusal != NICRefusal::kNone) {
    ++counters_.refused_sent[static_cast<std::size_t>(refusal)];
    return size;
  }
  const u32 own_class = config_.classes.class_of(record.header.traffic_class);
  if (own_class != traffic_class && !max_of_class_[own_class].may_send(now)) {
    ++counters_.refused_sent[static_cast<std::size_t>(NICRefusal::kTrafficClass)];
    return size;
  }
  if (asks_for_connection(transport)) {
    if (!connections_.may_send(now)) {
      ++counters_.refused_connections;
      return size;
    }
    connections_.on_sent(1);
  }
  EgressFrame frame = frame_of(record.header, from, to, transport);
  if (!is_whole) frame.payload.add(record.body.first(size - kICRCSize).subspan(copied));
  if (NICFunction* const receiver = on_this_nic(to, vlans))
    receiver->receive_here({.source = from,
                            .destination = to,
                            .udp_source_port = frame.udp_source_port,
                            .traffic_class = frame.traffic_class,
                            .hop_limit = frame.hop_limit,
                            .transport = copy,
                            .authenticated = true},
                           now);
  else
    program.link->append(frame);
  staged_ += copied;
  note_sent(size, own_class, to);
  return size;
}

void NICFunction::note_sent(u64 bytes, u32 traffic_class, const GID& to) {
  max_.on_sent(bytes);
  guaranteed_.on_sent(bytes);
  max_of_class_[traffic_class].on_sent(bytes);
  ++counters_.sent_packets;
  counters_.sent_bytes += bytes;
  if (to.is_multicast()) ++counters_.sent_to_groups;
  ++counters_.sent_packets_of_class[traffic_class];
  counters_.sent_bytes_of_class[traffic_class] += bytes;
}

NICFunction* NICFunction::on_this_nic(const GID& destination, NICVLANs& vlans) const {
  return config_.vlan ? vlans.function_at(*config_.vlan, destination) : nullptr;
}

void NICFunction::flush() {
  for (const auto& program : programs_) program->link->flush();
  staged_ = 0;
}

u32 NICFunction::pending() {
  u32 pending = streams_->can_send() ? 1u << class_of_streams() : 0;
  for (const auto& program : programs_) pending |= program->from_program->pending();
  return pending;
}

bool NICFunction::may_send(Time now) {
  if (!max_.may_send(now)) return false;
  for (u32 left = pending(); left != 0; left &= left - 1)
    if (max_of_class_[lowest_of(left)].may_send(now)) return true;
  return false;
}

Time NICFunction::next_due(Time now, const TokenBucket& of_all) {
  Time of_class = Time::never();
  for (u32 left = pending(); left != 0; left &= left - 1)
    of_class = std::min(of_class, max_of_class_[lowest_of(left)].ready_at(now));
  if (of_class == Time::never()) return of_class;
  return std::max({of_class, max_.ready_at(now), of_all.ready_at(now)});
}

// --- to the programs

bool NICFunction::receive(Look look, Time now) {
  bool any = streams_->receive(now);
  for (const auto& program : programs_) any = receive_of(*program, look, now) || any;
  return any;
}

bool NICFunction::receive_of(Program& program, Look look, Time now) {
  const bool came = program.link->receive(look) || program.link->next_timer() <= now;
  IngressFrame frame;
  u32 taken = 0;
  while (program.link->poll_frame(frame, now)) {
    ++taken;
    check_and_deliver(program, frame);
  }
  if (taken != 0) publish(program);
  return came && taken != 0;
}

bool NICFunction::has_address(const GID& address) const {
  return std::ranges::find(addresses_, address) != addresses_.end();
}

NICFunction::Program* NICFunction::take(const IngressFrame& frame, Time now) {
  if (programs_.empty() || frame.transport.size() < BTH::kSize) {
    ++counters_.receive_dropped;
    return nullptr;
  }
  const u32 slot = slot_of(load_be24(frame.transport.data() + BTH::kDestQPAt));
  const auto owner = std::ranges::find_if(
      programs_, [&](const auto& program) { return program->udp->slot() == slot; });
  Program& program = owner == programs_.end() ? *programs_.front() : **owner;
  if (!program.udp->is_for_our_device(frame, now)) return nullptr;  // handed on, or kept for later
  check_and_deliver(program, frame);
  return &program;
}

void NICFunction::receive_here(const IngressFrame& frame, Time now) {
  if (Program* const program = take(frame, now)) publish(*program);
}

void NICFunction::check_and_deliver(Program& program, const IngressFrame& frame) {
  const NICRefusal refusal = filter_.check_received(frame, program.seen);
  if (refusal == NICRefusal::kNone)
    deliver(program, frame);
  else
    ++counters_.refused_received[static_cast<std::size_t>(refusal)];
}

void NICFunction::publish(Program& program) {
  if (program.to_program->publish() && !program.to_program->is_watched())
    ring_doorbell(program.doorbell_of_program.get());
}

void NICFunction::deliver(Program& program, const IngressFrame& frame) {
  const std::size_t size = frame.transport.size();
  u8* const out =
      size <= FrameRing::kMaxBody
          ? program.to_program->add({frame.source, frame.destination}, static_cast<u32>(size))
          : nullptr;
  if (out == nullptr) {
    ++counters_.receive_dropped;
    return;
  }
  FrameRing::Header& header = program.to_program->last();
  header.udp_source_port = frame.udp_source_port;
  header.traffic_class = frame.traffic_class;
  header.hop_limit = frame.hop_limit;
  std::memcpy(out, frame.transport.data(), size);
  ++counters_.received_packets;
  if (frame.destination.is_multicast()) ++counters_.received_from_groups;
  counters_.received_bytes += size;
}

void NICFunction::watch() {
  for (const auto& program : programs_) program->from_program->watch();
}

void NICFunction::unwatch() {
  for (const auto& program : programs_) program->from_program->unwatch();
}

}  // namespace verbena::host
