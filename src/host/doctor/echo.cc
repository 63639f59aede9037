#include "host/doctor/echo.h"

#include <algorithm>
#include <array>

#include "base/bytes.h"
#include "device/port/frame_check.h"
#include "wire/roce/source_port.h"

namespace verbena::host {
namespace {

constexpr Opcode kSendOnly{Service::kUD, Op::kSendOnly};

// In the private data, network order: |magic (64)|, then of a request |answer's traffic class|, of
// a reply |bytes (16)|traffic class|hop limit|.
constexpr u64 kEchoMagic = 0x5652424e4543484f;  // "VRBNECHO"
constexpr std::size_t kNoteSize = 12;

}  // namespace

cm::MADBytes EchoRequest::encode() const {
  cm::DREQ dreq{.local_comm_id = ours, .remote_comm_id = theirs};
  Writer<kNoteSize> w(std::span(dreq.private_data).first<kNoteSize>());
  w.put64<0>(kEchoMagic);
  w.put8<8>(answer_traffic_class);
  return cm::Message{.transaction_id = transaction_id, .body = dreq}.encode();
}

cm::MADBytes EchoReply::encode() const {
  cm::DREP drep{.local_comm_id = ours, .remote_comm_id = theirs};
  if (note) {
    Writer<kNoteSize> w(std::span(drep.private_data).first<kNoteSize>());
    w.put64<0>(kEchoMagic);
    w.put16<8>(note->transport_bytes);
    w.put8<10>(note->traffic_class);
    w.put8<11>(note->hop_limit);
  }
  return cm::Message{.transaction_id = transaction_id, .body = drep}.encode();
}

std::optional<std::span<const u8>> mad_in(const IngressFrame& frame) {
  if (check_frame(frame) != FrameFault::kNone) return std::nullopt;
  const std::optional<PacketView> packet = PacketView::decode(without_icrc(frame));
  if (!packet || packet->headers.bth.dest_qp != kGSIQPN ||
      packet->headers.bth.opcode != kSendOnly || packet->headers.deth.q_key != kGSIQKey ||
      packet->payload.size() < kMADSize)
    return std::nullopt;
  return packet->payload.first(kMADSize);
}

std::optional<EchoRequest> decode_request(std::span<const u8> mad) {
  const std::optional<cm::Message> message = cm::Message::decode(mad);
  const cm::DREQ* const dreq = message ? std::get_if<cm::DREQ>(&message->body) : nullptr;
  if (dreq == nullptr) return std::nullopt;
  const Reader<kNoteSize> r(std::span(dreq->private_data).first<kNoteSize>());
  return EchoRequest{.transaction_id = message->transaction_id,
                     .ours = dreq->local_comm_id,
                     .theirs = dreq->remote_comm_id,
                     .answer_traffic_class = r.get64<0>() == kEchoMagic ? r.get8<8>() : u8{0}};
}

std::optional<EchoReply> decode_reply(std::span<const u8> mad) {
  const std::optional<cm::Message> message = cm::Message::decode(mad);
  const cm::DREP* const drep = message ? std::get_if<cm::DREP>(&message->body) : nullptr;
  if (drep == nullptr) return std::nullopt;
  EchoReply reply{.transaction_id = message->transaction_id,
                  .ours = drep->local_comm_id,
                  .theirs = drep->remote_comm_id,
                  .note = {}};
  const Reader<kNoteSize> r(std::span(drep->private_data).first<kNoteSize>());
  if (r.get64<0>() == kEchoMagic)
    reply.note = EchoNote{
        .transport_bytes = r.get16<8>(), .traffic_class = r.get8<10>(), .hop_limit = r.get8<11>()};
  return reply;
}

EgressFrame echo_frame(const GID& source, const GID& destination, u8 traffic_class,
                       std::span<const u8> payload) {
  const PacketHeaders headers{.bth = {.opcode = kSendOnly, .mig_req = true, .dest_qp = kGSIQPN},
                              .deth = {.q_key = kGSIQKey, .source_qp = kGSIQPN}};
  EgressFrame frame;
  headers.encode(frame.headers);
  frame.headers_size = static_cast<u8>(headers.size());
  frame.source_qp = kGSIQPN;
  frame.source = source;
  frame.destination = destination;
  frame.traffic_class = traffic_class;
  frame.udp_source_port = source_port_of(kGSIQPN, kGSIQPN);
  frame.payload.add(payload);
  return frame;
}

}  // namespace verbena::host
