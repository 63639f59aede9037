#include "device/port/ingress.h"

#include <algorithm>

#include "device/port/frame_check.h"
#include "wire/eth/ecn.h"
#include "wire/roce/cnp.h"

namespace verbena {
namespace {

// RoCEv1 has neither ECN nor CNPs.
bool is_marked(const IngressFrame& frame) {
  return ecn_of(frame.traffic_class) == ECN::kCE && frame.type == GIDType::kRoCEv2;
}

u64 access_refusals(const QueuePair& qp) {
  return qp.engine == nullptr ? 0 : qp.engine->counters().resp_remote_access_errors;
}

}  // namespace

Reception Ingress::on_frame(const IngressFrame& frame, Time now) {
  ++counters_.port_rcv_packets;
  counters_.port_rcv_bytes += frame.transport.size();
  if (const Reception sound = check(frame); sound != Reception::kAccepted) return sound;
  if (!packet_.assign(without_icrc(frame))) {
    ++counters_.port_rcv_errors;
    return Reception::kMalformed;
  }
  return dispatch(packet_, frame, now);
}

Reception Ingress::on_packet(const PacketView& packet, const IngressFrame& frame, Time now) {
  counters_.port_rcv_packets += frame.packets;
  counters_.port_rcv_bytes += frame.packets * frame.transport.size();
  return dispatch(packet, frame, now);
}

Reception Ingress::dispatch(const PacketView& packet, const IngressFrame& frame, Time now) {
  if (refusals_.is_silenced(frame.source, now)) {
    ++counters_.dropped_silenced;
    return Reception::kSource;
  }
  if (frame.destination.is_multicast()) return on_multicast(packet, frame, now);
  if (packet.headers.bth.dest_qp == kGSIQPN) {
    gsi_.on_packet(packet, frame);
    return Reception::kAccepted;
  }
  QueuePair* const qp = qps_.find(packet.headers.bth.dest_qp);
  if (packet.headers.bth.opcode.service == Service::kCNP) {
    on_cnp(qp, frame, now);
    return Reception::kAccepted;
  }
  return on_packet(qp, packet, frame, now);
}

Reception Ingress::check(const IngressFrame& frame) {
  switch (check_frame(frame, seen_)) {
    case FrameFault::kNone: return Reception::kAccepted;
    case FrameFault::kICRC:
      ++counters_.rx_icrc_encapsulated;
      ++counters_.port_rcv_errors;
      return Reception::kBadICRC;
    case FrameFault::kSize:
    case FrameFault::kAddresses: break;
  }
  ++counters_.port_rcv_errors;
  return Reception::kMalformed;
}

// One that does not come from the peer is not believed.
void Ingress::on_cnp(QueuePair* qp, const IngressFrame& frame, Time now) {
  const bool known = qp != nullptr && is_connected(qp->attributes.type) && is_from_peer(*qp, frame);
  ++(known ? counters_.rp_cnp_handled : counters_.rp_cnp_ignored);
  if (known) runner_.on_cnp(*qp, now);
}

Reception Ingress::on_packet(QueuePair* qp, const PacketView& packet, const IngressFrame& frame,
                             Time now) {
  const Reception admission = admit(qp, packet, frame);
  if (admission != Reception::kAccepted) {
    count_drop(admission);
    if (admission == Reception::kUnknownQP || admission == Reception::kSource)
      refusals_.on_refused(frame.source, now);
    return admission;
  }
  const bool brings = frame.acknowledgement != nullptr;
  qp->traffic.received_packets += frame.packets + (brings ? 1 : 0);
  qp->traffic.received_bytes +=
      frame.packets * frame.transport.size() + (brings ? Acknowledgement::kBytes : 0);
  if (brings) on_brought(*qp, *frame.acknowledgement, now);
  if (is_marked(frame)) on_marked(*qp, now);
  if (packet.headers.bth.becn) runner_.on_cnp(*qp, now);
  if (qp->rc != nullptr && runner_.take_send(*qp, packet, now)) return Reception::kAccepted;
  if (!refusals_.is_on()) {
    run_engine(*qp, packet, frame, now);
    return Reception::kAccepted;
  }
  const u64 refused_before = access_refusals(*qp);
  run_engine(*qp, packet, frame, now);
  if (access_refusals(*qp) != refused_before) refusals_.on_refused(frame.source, now);
  return Reception::kAccepted;
}

// A train that the engine does not take as one arrives packet by packet.
void Ingress::run_engine(QueuePair& qp, const PacketView& packet, const IngressFrame& frame,
                         Time now) {
  if (frame.packets == 1) return run_engine_once(qp, packet, frame, now);
  if (qp.rc != nullptr && runner_.take_train(qp, packet, frame.packets, now)) return;
  const std::size_t size = packet.payload.size() / frame.packets;
  PacketView one = packet;
  for (u32 i = 0; i < frame.packets; ++i) {
    one.payload = packet.payload.subspan(i * size, size);
    run_engine_once(qp, one, frame, now);
    one.headers.bth.psn = one.headers.bth.psn.next();
  }
}

void Ingress::run_engine_once(QueuePair& qp, const PacketView& packet, const IngressFrame& frame,
                              Time now) {
  runner_.on_packet(qp, packet,
                    {.source = frame.source,
                     .destination = frame.destination,
                     .type = frame.type,
                     .traffic_class = frame.traffic_class,
                     .hop_limit = frame.hop_limit,
                     .transport_bytes = static_cast<u16>(frame.transport.size()),
                     .path = frame.path},
                    now);
}

// It is a packet of its own, and comes before the other.
void Ingress::on_brought(QueuePair& qp, const Acknowledgement& acknowledgement, Time now) {
  ++counters_.port_rcv_packets;
  counters_.port_rcv_bytes += Acknowledgement::kBytes;
  runner_.on_acknowledgement(qp, acknowledgement, now);
}

// A copy to each QP that is attached. Only the multicast QPN goes with a group.
// IBTA 9.6.1.1, 10.5.1
Reception Ingress::on_multicast(const PacketView& packet, const IngressFrame& frame, Time now) {
  const std::span<QueuePair* const> attached = multicast_.find(frame.destination);
  if (packet.headers.bth.dest_qp != kMulticastQPN || attached.empty()) {
    count_drop(Reception::kUnknownQP);
    return Reception::kUnknownQP;
  }
  const bool is_own = is_own_datagram(packet, frame);
  for (QueuePair* const qp : attached)
    if (!is_own || !qp->init.block_own_multicast) on_packet(qp, packet, frame, now);
  return Reception::kAccepted;
}

// Sent by a QP of this device.
bool Ingress::is_own_datagram(const PacketView& packet, const IngressFrame& frame) const {
  if (!traits_of(packet.headers.bth.opcode).deth) return false;
  const QueuePair* const source = qps_.find(packet.headers.deth.source_qp);
  return source != nullptr && std::ranges::any_of(gids_, [&frame](const GIDEntry& entry) {
           return entry.gid == frame.source;
         });
}

void Ingress::on_marked(QueuePair& qp, Time now) {
  ++counters_.np_ecn_marked_roce_packets;
  if (is_connected(qp.attributes.type)) cnps_.on_marked(qp, now);
}

void Ingress::count_drop(Reception reason) {
  switch (reason) {
    case Reception::kAccepted:
    case Reception::kMalformed:
    case Reception::kBadICRC: return;
    case Reception::kUnknownQP: ++counters_.dropped_unknown_qp; return;
    case Reception::kService: ++counters_.dropped_service; return;
    case Reception::kState: ++counters_.dropped_state; return;
    case Reception::kPKey: ++counters_.dropped_p_key; return;
    case Reception::kSource: ++counters_.dropped_source; return;
  }
  CHECK_UNREACHABLE();
}

}  // namespace verbena
