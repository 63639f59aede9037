#include "faults/held_frame.h"

#include <algorithm>
#include <cstring>

#include "base/prng.h"
#include "memory/touch.h"
#include "wire/eth/ecn.h"
#include "wire/roce/icrc.h"

namespace verbena::faults {
namespace {

constexpr u8 kAnswerHopLimit = 64;
// FECN, BECN and the reserved bits beside them: the ICRC does not cover this byte. A17.3.3
constexpr std::size_t kMaskedByte = 4;

u8 headers_size_of(std::span<const u8> transport) {
  const std::optional<BTH> bth = BTH::decode(transport);
  const std::size_t size = bth ? traits_of(bth->opcode).headers_size : kMaxHeadersSize;
  return static_cast<u8>(std::min(size, transport.size()));
}

// Gathers the payload. Bytes that are no longer accessible stay zero.
void gather(const PayloadList& payload, u8* to) {
  for (u32 i = 0; i < payload.count; ++i) {
    const Bytes part = payload.parts[i];
    (void)touch([&] { std::memcpy(to, part.data(), part.size()); });
    to += part.size();
  }
}

PacketHeaders answer_headers(const BTH& request, const Verdict::Answer& what, QPN requester) {
  return {.bth = {.opcode = {request.opcode.service, Op::kAcknowledge},
                  .mig_req = request.mig_req,
                  .p_key = request.p_key,
                  .dest_qp = requester,
                  .psn = request.psn},
          .aeth = {.kind = what.kind, .value = what.value}};
}

std::vector<u8> encoded(const PacketHeaders& headers) {
  std::vector<u8> bytes(headers.size());
  headers.encode(bytes);
  return bytes;
}

}  // namespace

HeldFrame HeldFrame::of(const EgressFrame& frame, u16 identification) {
  HeldFrame held;
  held.source_ = frame.source;
  held.destination_ = frame.destination;
  held.type_ = frame.type;
  held.udp_source_port_ = frame.udp_source_port;
  held.identification_ = identification;
  held.traffic_class_ = frame.traffic_class;
  held.hop_limit_ = frame.hop_limit;
  held.source_qp_ = frame.source_qp;
  held.headers_size_ = frame.headers_size;
  held.icrc_flip_ = frame.icrc_flip;
  std::vector<u8>& bytes = held.transport_;
  bytes.resize(frame.transport_size() + kICRCSize);
  std::copy_n(frame.headers.begin(), frame.headers_size, bytes.begin());
  gather(frame.payload, bytes.data() + frame.headers_size);
  held.add_icrc();
  return held;
}

HeldFrame HeldFrame::of(const IngressFrame& frame) {
  HeldFrame held;
  held.source_ = frame.source;
  held.destination_ = frame.destination;
  held.type_ = frame.type;
  held.udp_source_port_ = frame.udp_source_port;
  held.identification_ = frame.identification;
  held.identification_known_ = frame.identification_known;
  held.other_identification_ = frame.other_identification;
  held.traffic_class_ = frame.traffic_class;
  held.hop_limit_ = frame.hop_limit;
  held.headers_size_ = headers_size_of(frame.transport);
  held.transport_.assign(frame.transport.begin(), frame.transport.end());
  return held;
}

HeldFrame HeldFrame::answer_to(const EgressFrame& request, const Verdict::Answer& what) {
  const BTH bth = *BTH::decode(std::span(request.headers).first(request.headers_size));
  HeldFrame held;
  held.source_ = request.destination;
  held.destination_ = request.source;
  held.type_ = request.type;
  held.udp_source_port_ = request.udp_source_port;
  held.traffic_class_ = request.traffic_class;
  held.hop_limit_ = kAnswerHopLimit;
  held.transport_ = encoded(answer_headers(bth, what, request.source_qp));
  held.headers_size_ = static_cast<u8>(held.transport_.size());
  held.transport_.resize(held.transport_.size() + kICRCSize);
  held.add_icrc();
  return held;
}

std::optional<HeldFrame> HeldFrame::answer_to(const IngressFrame& request,
                                              const Verdict::Answer& what, QPN requester) {
  const std::optional<BTH> bth = BTH::decode(request.transport);
  if (!bth) return std::nullopt;
  HeldFrame held;
  held.source_ = request.destination;
  held.destination_ = request.source;
  held.type_ = request.type;
  held.udp_source_port_ = request.udp_source_port;
  held.traffic_class_ = request.traffic_class;
  held.hop_limit_ = kAnswerHopLimit;
  held.source_qp_ = bth->dest_qp;
  held.transport_ = encoded(answer_headers(*bth, what, requester));
  held.headers_size_ = static_cast<u8>(held.transport_.size());
  held.transport_.resize(held.transport_.size() + kICRCSize);
  held.add_icrc();
  return held;
}

u32 HeldFrame::right_icrc(Bytes transport) const {
  if (type_ == GIDType::kRoCEv1)
    return icrc_of_v1({.payload_length = static_cast<u16>(transport_.size()),
                       .sgid = source_,
                       .dgid = destination_},
                      transport);
  return icrc_of({.source = source_,
                  .destination = destination_,
                  .udp_source_port = udp_source_port_,
                  .identification = identification_},
                 transport);
}

void HeldFrame::add_icrc() {
  const std::span<u8> bytes(transport_);
  store_icrc(right_icrc(bytes.first(bytes.size() - kICRCSize)) ^ icrc_flip_,
             bytes.last<kICRCSize>());
}

void HeldFrame::corrupt(const Verdict::Corruption& corruption) {
  const std::size_t first = corruption.good_icrc ? headers_size_ : 0;
  const std::size_t end = transport_.size() < kICRCSize ? 0 : transport_.size() - kICRCSize;
  if (first >= end) return;  // no payload
  PRNG prng(corruption.seed);
  for (u32 flips = corruption.bits; flips != 0; --flips) {
    const std::size_t at = prng.in(first, end - 1);
    if (at != kMaskedByte) transport_[at] ^= static_cast<u8>(1u << prng.below(8));
  }
  identification_known_ = true;  // otherwise a receiver might find one that makes the ICRC right
  other_identification_.reset();
  if (corruption.good_icrc) return add_icrc();
  icrc_flip_ = 1;
  transport_.back() ^= 1;
}

void HeldFrame::mark() { traffic_class_ = traffic_class_of(dscp_of(traffic_class_), ECN::kCE); }

EgressFrame HeldFrame::egress() const {
  EgressFrame frame;
  frame.source = source_;
  frame.destination = destination_;
  frame.type = type_;
  frame.udp_source_port = udp_source_port_;
  frame.traffic_class = traffic_class_;
  frame.hop_limit = hop_limit_;
  frame.source_qp = source_qp_;
  frame.headers_size = headers_size_;
  frame.icrc_flip = icrc_flip_;
  std::copy_n(transport_.begin(), headers_size_, frame.headers.begin());
  const std::span<const u8> bytes(transport_);
  const std::size_t rest = bytes.size() - kICRCSize - headers_size_;  // payload and pad
  if (rest != 0) frame.payload.add(bytes.subspan(headers_size_, rest));
  return frame;
}

IngressFrame HeldFrame::ingress() const {
  return {.source = source_,
          .destination = destination_,
          .type = type_,
          .udp_source_port = udp_source_port_,
          .traffic_class = traffic_class_,
          .hop_limit = hop_limit_,
          .identification_known = identification_known_,
          .identification = identification_,
          .other_identification = other_identification_,
          .transport = transport_};
}

}  // namespace verbena::faults
