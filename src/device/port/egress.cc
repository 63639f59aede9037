#include "device/port/egress.h"

#include <algorithm>

#include "device/port/gid_table.h"
#include "device/port/source_port.h"
#include "transport/rc/engine.h"
#include "wire/eth/ecn.h"
#include "wire/roce/cnp.h"

namespace verbena {
namespace {

// Linux uses this hop limit if an address vector says 0, which no router would forward.
constexpr u8 kDefaultHopLimit = 64;

void write_addresses(const AddressVector& path, const GIDEntry& source, EgressFrame& out) {
  out.source = source.gid;
  out.type = source.type;
  out.destination = path.destination;
  out.traffic_class = path.traffic_class;
  out.hop_limit = path.hop_limit != 0 ? path.hop_limit : kDefaultHopLimit;
}

// Sets the BTH fields that the device, and not the transport, decides: IBTA 9.2; MigReq as ConnectX
// has it.
void complete_bth(const QPAttributes& qp, u32 payload_bytes, BTH& bth) {
  bth.mig_req = true;
  bth.p_key = qp.p_key;
  bth.pad_count = static_cast<u8>(-payload_bytes & 3);
  if (is_connected(qp.type)) bth.dest_qp = qp.dest_qp;
}

void copy_payload(const PayloadList& from, PayloadList& to) {
  to.clear();
  for (u32 i = 0; i < from.count; ++i) to.add(from.parts[i]);
}

}  // namespace

bool Egress::poll_frame(Time now, Trains trains, EgressFrame& out) {
  out.urgency = Urgency::kNow;
  out.packets = 1;
  if (poll_cnp(out)) return true;
  if (gsi_.poll_frame(out)) {
    count(1, out.transport_size() + kICRCSize);
    return true;
  }
  for (;;) {
    packet_.urgency = Urgency::kNow;
    QueuePair* const qp = runner_.poll_packet(now, trains, packet_);
    if (qp == nullptr) {
      if (config_.local.packets != nullptr) config_.local.packets->flush();
      return false;
    }
    if (goes_without_frame(*qp)) continue;
    finish(*qp, out);
    if (qp->paced) pace(*qp, out, now);
    return true;
  }
}

// Sends a packet, or a train, to a peer on the same host.
bool Egress::goes_without_frame(QueuePair& qp) {
  if (config_.local.packets == nullptr || qp.attributes.type != QPType::kRC || qp.paced)
    return false;
  const u32 packets = packet_.packets, payload_bytes = packet_.payload.size_bytes / packets;
  complete_bth(qp.attributes, payload_bytes, packet_.headers.bth);
  if (!config_.local.packets->take(qp.attributes, packet_)) return false;
  count(qp, packets,
        packets *
            (packet_.headers.size() + payload_bytes + packet_.headers.bth.pad_count + kICRCSize));
  return true;
}

void Egress::count(u32 packets, u64 bytes) {
  counters_.port_xmit_packets += packets;
  counters_.port_xmit_bytes += bytes;
}

void Egress::count(QueuePair& qp, u32 packets, u64 bytes) {
  count(packets, bytes);
  qp.traffic.sent_packets += packets;
  qp.traffic.sent_bytes += bytes;
}

PostError Egress::post_last_send(QueuePair& qp, const SendWR& wr, Time now) {
  const PostError error = qp.rc->post_send(wr, now);
  if (error != PostError::kOk) return error;
  const std::optional<u32> bytes = qp.rc->send_at_once(now);
  if (!bytes) {
    runner_.on_posted(qp, now);
    return PostError::kOk;
  }
  count(qp, 1, *bytes + kICRCSize);
  runner_.on_sent_at_once(qp);
  return PostError::kOk;
}

bool Egress::poll_acknowledgement(Time now, EgressFrame& out) {
  out.packets = 1;
  if (poll_cnp(out)) return true;
  QueuePair* const qp = runner_.poll_acknowledgement(now, packet_);
  if (qp == nullptr) return false;
  finish(*qp, out);
  return true;
}

void Egress::finish(QueuePair& qp, EgressFrame& out) {
  write_packet(qp, out);
  count(qp, out.packets, out.packets * (out.transport_size() + kICRCSize));
}

void Egress::write_packet(const QueuePair& qp, EgressFrame& out) {
  PacketHeaders& headers = packet_.headers;
  const QPAttributes& attributes = qp.attributes;
  out.packets = packet_.packets;
  copy_payload(packet_.payload, out.payload);
  complete_bth(attributes, out.payload_bytes(), headers.bth);
  headers.encode(out.headers);
  out.source_qp = attributes.qpn;
  out.headers_size = static_cast<u8>(headers.size());
  out.pad_count = headers.bth.pad_count;
  out.payload_is_stable = packet_.payload.unstable == 0;
  out.urgency = packet_.urgency;

  const AddressVector& path =
      packet_.destination != nullptr ? *packet_.destination : attributes.path;
  const GIDEntry* const source = gid_at(config_, path.source_gid_index);
  CHECK(source != nullptr);  // modify_qp and post_send let no other pass
  write_addresses(path, *source, out);
  out.udp_source_port = udp_source_port(config_, path, attributes.qpn, headers.bth.dest_qp);
}

void Egress::pace(QueuePair& qp, const EgressFrame& frame, Time now) {
  const bool is_request = traits_of(packet_.headers.bth.opcode).request;
  if (!is_request && frame.payload.size_bytes == 0) return;
  runner_.on_paced(qp,
                   {.bytes = static_cast<u32>(frame.transport_size() + kICRCSize),
                    .payload_bytes = frame.payload.size_bytes},
                   now);
}

bool Egress::poll_cnp(EgressFrame& out) {
  const QueuePair* const qp = cnps_.pop();
  if (qp == nullptr) return false;
  const QPAttributes& attributes = qp->attributes;
  const std::array<u8, kCNPSize> cnp = encode_cnp(attributes.dest_qp, attributes.p_key);
  std::ranges::copy(cnp, out.headers.begin());
  out.source_qp = attributes.qpn;
  out.headers_size = static_cast<u8>(kCNPSize);
  out.pad_count = 0;
  out.payload_is_stable = true;
  out.payload.clear();
  write_addresses(attributes.path, {attributes.path.source}, out);
  out.traffic_class = traffic_class_of(dscp_of(out.traffic_class), ECN::kNotECT);
  out.udp_source_port =
      udp_source_port(config_, attributes.path, attributes.qpn, attributes.dest_qp);
  ++counters_.np_cnp_sent;
  count(1, out.transport_size() + kICRCSize);
  return true;
}

}  // namespace verbena
