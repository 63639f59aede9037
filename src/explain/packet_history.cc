#include "explain/packet_history.h"

#include <algorithm>

#include "base/bytes.h"
#include "wire/ib/aeth.h"
#include "wire/ib/bth.h"

namespace verbena::explain {
namespace {

// Describes a packet that begins with `headers`, at least a BTH.
void describe(Bytes headers, std::size_t transport_bytes, PacketRecord& out) {
  out.psn = PSN(load_be24(headers.data() + BTH::kPSNAt));
  out.opcode = headers[0];
  out.transport_bytes = static_cast<u16>(transport_bytes);
  const bool aeth = traits_of(Opcode::from_byte(out.opcode)).aeth;
  out.syndrome =
      aeth && headers.size() > BTH::kSize ? headers[BTH::kSize] : PacketRecord::kNoSyndrome;
  out.rule = 0;
}

u8 syndrome_of(const AETH& aeth) {
  std::array<u8, AETH::kSize> bytes;
  aeth.encode(bytes);
  return bytes[0];
}

}  // namespace

PacketHistory::PacketHistory() : places_(std::make_unique<Place[]>(kPlaces)) {}

// Records a train packet by packet.
void PacketHistory::on_sent(const EgressFrame& frame, Time now) {
  Ring& sent = place_of(frame.source_qp).sent;
  PacketRecord& record = sent.add();
  record.at = now;
  record.qp = frame.source_qp;
  record.direction = Direction::kSent;
  record.reception = Reception::kAccepted;
  describe({frame.headers.data(), frame.headers_size}, frame.transport_size(), record);
  if (frame.packets != 1) follow(sent, record, frame.packets);
}

// Adds the other packets of a train.
void PacketHistory::follow(Ring& ring, const PacketRecord& first, u32 packets) {
  PacketRecord next = first;
  for (u32 i = 1; i < packets; ++i) {
    next.psn = next.psn.next();
    ring.add() = next;
  }
}

void PacketHistory::on_received(const IngressFrame& frame, Reception reception, Time now) {
  if (frame.transport.size() < BTH::kSize + kICRCSize) return;
  const QPN qp{load_be24(frame.transport.data() + BTH::kDestQPAt)};
  PacketRecord& record = place_of(qp).received.add();
  record.at = now;
  record.qp = qp;
  record.direction = Direction::kReceived;
  record.reception = reception;
  describe(frame.transport, frame.transport.size() - kICRCSize, record);
}

void PacketHistory::on_received(const PacketView& packet, std::size_t transport_bytes, u32 packets,
                                Reception reception, Time now) {
  const BTH& bth = packet.headers.bth;
  Ring& received = place_of(bth.dest_qp).received;
  PacketRecord& record = received.add();
  // Field by field: a record that is made elsewhere and copied would stall on store forwarding.
  record.at = now;
  record.qp = bth.dest_qp;
  record.psn = bth.psn;
  record.transport_bytes = static_cast<u16>(transport_bytes);
  record.opcode = bth.opcode.to_byte();
  record.syndrome = PacketRecord::kNoSyndrome;
  record.direction = Direction::kReceived;
  record.reception = reception;
  record.rule = 0;
  if (traits_of(bth.opcode).aeth) record.syndrome = syndrome_of(packet.headers.aeth);
  if (packets != 1) follow(received, record, packets);
}

void PacketHistory::on_received(const Acknowledgement& acknowledgement, QPN qp, Time now) {
  PacketRecord& record = place_of(qp).received.add();
  record.at = now;
  record.qp = qp;
  record.psn = acknowledgement.psn;
  record.transport_bytes = BTH::kSize + AETH::kSize;
  record.opcode = Opcode{Service::kRC, Op::kAcknowledge}.to_byte();
  record.syndrome = syndrome_of(acknowledgement.aeth);
  record.direction = Direction::kReceived;
  record.reception = Reception::kAccepted;
  record.rule = 0;
}

void PacketHistory::on_lost_by_fault(const EgressFrame& frame, std::string_view rule) {
  Ring& sent = place_of(frame.source_qp).sent;
  if (sent.count != 0) sent.last().rule = number_of(rule);
}

void PacketHistory::on_lost_by_fault(const IngressFrame& frame, std::string_view rule, Time now) {
  if (frame.transport.size() < BTH::kSize + kICRCSize) return;
  on_received(frame, Reception::kAccepted, now);
  place_of(QPN{load_be24(frame.transport.data() + BTH::kDestQPAt)}).received.last().rule =
      number_of(rule);
}

u8 PacketHistory::number_of(std::string_view rule) {
  const auto found = std::find(rules_.begin(), rules_.end(), rule);
  if (found == rules_.end() && rules_.size() < kMaxRules) {
    rules_.emplace_back(rule);
    return static_cast<u8>(rules_.size());
  }
  return static_cast<u8>(std::min<std::size_t>(found - rules_.begin() + 1, rules_.size()));
}

std::vector<PacketRecord> PacketHistory::of(QPN qp) const {
  std::vector<PacketRecord> out;
  const Place& place = place_of(qp);
  for (const Ring* ring : {&place.received, &place.sent}) {  // at one time: question, answer
    const u32 kept = std::min(ring->count, kDepth);
    for (u32 i = ring->count - kept; i != ring->count; ++i)
      if (ring->records[i % kDepth].qp == qp) out.push_back(ring->records[i % kDepth]);
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const PacketRecord& a, const PacketRecord& b) { return a.at < b.at; });
  return out;
}

}  // namespace verbena::explain
