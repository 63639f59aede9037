#include "host/local/outgoing_rings.h"

#include <cstring>

#include "base/bytes.h"
#include "host/local/ring_headers.h"
#include "memory/touch.h"

namespace verbena::host {
namespace {

constexpr u32 kFramesUntilLook = 4096;  // where there was no peer, or no ring
constexpr std::size_t kDestQPAt = 5;    // in BTH
constexpr u8 kServiceMask = 0xe0;       // of the opcode; RC is 0

bool is_rc(const EgressFrame& frame) { return (frame.headers[0] & kServiceMask) == 0; }

// Returns true when it is time to try again after a failure.
bool is_due(u32& frames_until_look) {
  if (frames_until_look != 0) {
    --frames_until_look;
    return false;
  }
  frames_until_look = kFramesUntilLook;
  return true;
}

u8* write(Bytes bytes, u8* at) {
  std::memcpy(at, bytes.data(), bytes.size());
  return at + bytes.size();
}

u8* write(const PayloadList& payload, u8* at) {
  for (u32 i = 0; i < payload.count; ++i) at = write(payload.parts[i], at);
  return at;
}

// But for its ICRC.
void write(const EgressFrame& frame, u8* at) {
  at = write(Bytes(frame.headers).first(frame.headers_size), at);
  std::memset(write(frame.payload, at), 0, frame.pad_count);
}

}  // namespace

// --- to whom

OutgoingRings::Peer* OutgoingRings::peer_of(QPN dest_qp, const GID& destination) {
  if (is_closed_ || !processes_.is_on()) return nullptr;
  const u32 slot = slot_of(dest_qp.value);
  if (!is_process_slot(slot)) return nullptr;
  Peer& to = to_[slot];
  const bool reaches = is_here(slot, to) && to.process->is_open() && is_at(destination, to);
  return reaches && has_ring(to) ? &to : nullptr;
}

bool OutgoingRings::is_at(const GID& gid, Peer& to) {
  if (to.known == gid) return true;
  const bool has = to.process->has(gid);
  if (has) to.known = gid;
  return has;
}

// One whose process of the same number is on another host is looked for in vain, now and then.
bool OutgoingRings::is_here(u32 slot, Peer& to) {
  if (to.process != nullptr) {
    if (to.process->is_alive()) return true;
    to.ring.reset();
    to.acknowledgement.is_there = false;
    to.process.reset();
    to.known = {};
  }
  if (!is_due(to.frames_until_look)) return false;
  to.process = processes_.at(slot);
  if (to.process != nullptr) to.frames_until_look = 0;
  return to.process != nullptr;
}

bool OutgoingRings::has_ring(Peer& to) {
  if (to.ring) return true;
  if (!is_due(to.frames_until_look)) return false;
  to.memory = to.process->claim_ring();
  if (to.memory.data() == nullptr) return false;
  to.ring.emplace(reinterpret_cast<SegmentRing*>(to.memory.data())->frames);
  return true;
}

// --- what

void OutgoingRings::note_unflushed(Peer& to) {
  if (std::exchange(to.is_unflushed, true)) return;
  unflushed_.push_back(static_cast<u32>(&to - to_.data()));
}

// Returns the record header for the caller to fill in, or nullptr if the packet is lost.
template <typename Write>
FrameRing::Header* OutgoingRings::put(Peer& to, const FrameRing::Addresses& addresses,
                                      u32 body_bytes, u32 packets, const Write& write) {
  u8* const room = to.ring->add(addresses, body_bytes);
  if (room == nullptr) {
    dropped_ += packets;
    return nullptr;
  }
  if (body_bytes != 0 && !touch([&] { write(room); })) {
    to.ring->take_back();
    return nullptr;
  }
  sent_ += packets;
  note_unflushed(to);
  return &to.ring->last();
}

// Puts the waiting acknowledgement before the next record.
void OutgoingRings::put_acknowledgement(Peer& to) {
  Waiting& waiting = to.acknowledgement;
  if (!std::exchange(waiting.is_there, false)) return;
  FrameRing::Header* const header = put(to, waiting.addresses, 0, 1, [](u8*) {});
  if (header == nullptr) return;
  header->traffic_class = waiting.traffic_class;
  header->headers = waiting.headers;
}

bool OutgoingRings::take(const QPAttributes& qp, const TxPacket& packet) {
  const Opcode opcode = packet.headers.bth.opcode;
  if (!fits_ring(opcode)) return false;
  Peer* const to = peer_of(qp.dest_qp, qp.path.destination);
  if (to == nullptr) return false;
  const bool is_request = opcode.op != Op::kAcknowledge;
  has_others_ = true;
  taken_.requests |= is_request;
  Waiting& waiting = to->acknowledgement;
  const bool brings = is_request && waiting.headers.dest_qp == qp.dest_qp.value;
  if (!brings) put_acknowledgement(*to);
  FrameRing::Header* const header =
      put(*to, {qp.path.source, qp.path.destination}, packet.payload.size_bytes, packet.packets,
          [&](u8* at) { write(packet.payload, at); });
  FrameRing::Header lost;
  FrameRing::Header& out = header != nullptr ? *header : lost;
  out.traffic_class = qp.path.traffic_class;
  out.packets = static_cast<u8>(packet.packets);
  to_ring(packet.headers, out.headers);
  if (history_ != nullptr) note(qp, out.headers, packet.payload.size_bytes, packet.packets);
  if (header == nullptr || !std::exchange(waiting.is_there, false)) return true;
  bring(waiting.headers, out.headers);
  ++sent_;
  return true;
}

// As take(), but leaves a payload that cannot be read to other code. Nothing follows the packet: it
// is published at once, so that the peer sees it while we do the rest of the work.
bool OutgoingRings::send(const QPAttributes& qp, const LocalSend& send) {
  Peer* const to = peer_of(qp.dest_qp, qp.path.destination);
  if (to == nullptr) return false;
  Waiting& waiting = to->acknowledgement;
  if (waiting.headers.dest_qp != qp.dest_qp.value) put_acknowledgement(*to);
  const u32 bytes = static_cast<u32>(send.payload.size());
  u8* const room = to->ring->add({qp.path.source, qp.path.destination}, bytes);
  if (room == nullptr) return false;
  if (bytes != 0 && !touch([&] { write(send.payload, room); })) {
    to->ring->take_back();
    return false;
  }
  FrameRing::Header& out = to->ring->last();
  out.traffic_class = qp.path.traffic_class;
  to_ring(qp, send, out.headers);
  const bool brings = std::exchange(waiting.is_there, false);
  if (brings) bring(waiting.headers, out.headers);
  publish_records(*to);
  has_others_ = taken_.requests = true;
  sent_ += brings ? 2 : 1;
  if (history_ != nullptr) note(qp, out.headers, bytes, 1);
  return true;
}

// It stands for the one before, if the peer has not seen that yet. IBTA 9.7.5.1.2
bool OutgoingRings::acknowledge(const QPAttributes& qp, PSN psn, const AETH& aeth) {
  Peer* const to = peer_of(qp.dest_qp, qp.path.destination);
  if (to == nullptr) return false;
  Waiting& waiting = to->acknowledgement;
  if (waiting.headers.dest_qp != qp.dest_qp.value) put_acknowledgement(*to);
  if (!waiting.is_there) note_unflushed(*to);
  waiting.is_there = true;
  waiting.traffic_class = qp.path.traffic_class;
  waiting.addresses.source = qp.path.source;
  waiting.addresses.destination = qp.path.destination;
  to_ring(qp, psn, aeth, waiting.headers);
  taken_.acknowledgements = true;
  if (history_ != nullptr) note(qp, waiting.headers, 0, 1);
  return true;
}

// Notes the packets of a train one by one.
void OutgoingRings::note(const QPAttributes& qp, RingHeaders headers, u32 payload_bytes,
                         u32 packets) {
  for (u32 i = 0; i < packets; ++i, ++headers.psn)
    record(headers, payload_bytes / packets, qp.qpn, clock_->last(), history_->add_sent(qp.qpn));
}

bool OutgoingRings::take(const EgressFrame& frame) {
  if (!is_rc(frame)) return false;
  Peer* const to = peer_of(QPN{load_be24(frame.headers.data() + kDestQPAt)}, frame.destination);
  if (to == nullptr) return false;
  is_urgent_ |= frame.urgency != Urgency::kWithReply;
  has_others_ = true;
  put_acknowledgement(*to);
  FrameRing::Header* const header = put(*to, {frame.source, frame.destination},
                                        static_cast<u32>(frame.transport_size() + kICRCSize), 1,
                                        [&](u8* at) { write(frame, at); });
  if (header == nullptr) return true;
  header->udp_source_port = frame.udp_source_port;
  header->traffic_class = frame.traffic_class;
  header->hop_limit = frame.hop_limit;
  return true;
}

// --- when

void OutgoingRings::flush() {
  if (!holds_acknowledgements_ || has_others_) publish();
}

void OutgoingRings::publish() {
  for (const u32 slot : unflushed_) publish(to_[slot]);
  unflushed_.clear();
  is_urgent_ = has_others_ = holds_acknowledgements_ = false;
}

void OutgoingRings::publish(Peer& to) {
  if (to.ring) {
    put_acknowledgement(to);
    publish_records(to);
  }
  to.is_unflushed = false;
}

void OutgoingRings::publish_records(Peer& to) {
  if (!to.ring->publish() || to.ring->is_watched()) return;
  if (to.process->doorbells().ring(processes_.slot()))
    processes_.wake(static_cast<u32>(&to - to_.data()));
}

}  // namespace verbena::host
