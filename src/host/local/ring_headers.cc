#include "host/local/ring_headers.h"

namespace verbena::host {
namespace {

constexpr u32 kWordSize = 4;

// BTH, and one word at most.
bool fits(Opcode opcode, const OpcodeTraits& traits) {
  return opcode.service == Service::kRC && traits.valid &&
         traits.headers_size <= BTH::kSize + kWordSize;
}

constexpr u32 kKindAt = 29, kValueAt = 24;
constexpr u32 kValueMask = 0x1f;

u32 to_word(const AETH& aeth) {
  return u32{static_cast<u8>(aeth.kind)} << kKindAt | u32{aeth.value} << kValueAt |
         aeth.msn.value();
}
AETH to_aeth(u32 word) {
  return {.kind = static_cast<AETHKind>(word >> kKindAt & 3),
          .value = static_cast<u8>(word >> kValueAt & kValueMask),
          .msn = MSN(word)};
}

u32 word_of(const PacketHeaders& headers, const OpcodeTraits& traits) {
  if (traits.aeth) return to_word(headers.aeth);
  return traits.ieth ? headers.ieth.r_key.value : headers.imm.value;
}

u8 flags_of(const BTH& bth) {
  u32 flags = RingHeaders::kAreHere;
  if (bth.solicited_event) flags |= RingHeaders::kSolicited;
  if (bth.ack_req) flags |= RingHeaders::kAckReq;
  if (bth.takes_sack) flags |= RingHeaders::kTakesSack;
  return static_cast<u8>(flags);
}

}  // namespace

void to_ring(const QPAttributes& qp, PSN psn, const AETH& aeth, RingHeaders& out) {
  out.flags = RingHeaders::kAreHere;
  out.opcode = Opcode{Service::kRC, Op::kAcknowledge}.to_byte();
  out.p_key = qp.p_key.value;
  out.dest_qp = qp.dest_qp.value;
  out.psn = psn.value();
  out.word = to_word(aeth);
}

void to_ring(const QPAttributes& qp, const LocalSend& send, RingHeaders& out) {
  const Op op = send.with_immediate ? Op::kSendOnlyWithImmediate : Op::kSendOnly;
  out.flags =
      RingHeaders::kAreHere | RingHeaders::kAckReq | (send.solicited ? RingHeaders::kSolicited : 0);
  out.opcode = Opcode{Service::kRC, op}.to_byte();
  out.p_key = qp.p_key.value;
  out.dest_qp = qp.dest_qp.value;
  out.psn = send.psn.value();
  out.word = send.immediate;
}

bool fits_ring(Opcode opcode) { return fits(opcode, traits_of(opcode)); }

void to_ring(const PacketHeaders& headers, RingHeaders& out) {
  const BTH& bth = headers.bth;
  out.flags = flags_of(bth);
  out.opcode = bth.opcode.to_byte();
  out.p_key = bth.p_key.value;
  out.dest_qp = bth.dest_qp.value;
  out.psn = bth.psn.value();
  out.word = word_of(headers, traits_of(bth.opcode));
}

bool from_ring(const RingHeaders& ring, PacketHeaders& out) {
  const Opcode opcode = Opcode::from_byte(ring.opcode);
  const OpcodeTraits& traits = traits_of(opcode);
  if (!fits(opcode, traits)) return false;
  const auto has = [&ring](RingHeaders::Flags flag) { return (ring.flags & flag) != 0; };
  BTH& bth = out.bth;  // each field for itself: a copy of all would wait for them
  bth.opcode = opcode;
  bth.solicited_event = has(RingHeaders::kSolicited);
  bth.mig_req = true;
  bth.pad_count = 0;
  bth.p_key = PKey{ring.p_key};
  bth.fecn = bth.becn = false;
  bth.dest_qp = QPN{ring.dest_qp & kMask24};
  bth.ack_req = has(RingHeaders::kAckReq);
  bth.takes_sack = has(RingHeaders::kTakesSack);
  bth.psn = PSN(ring.psn);
  if (traits.aeth) out.aeth = to_aeth(ring.word);
  if (traits.imm_dt) out.imm.value = ring.word;
  if (traits.ieth) out.ieth.r_key = RKey{ring.word};
  return true;
}

void bring(const RingHeaders& acknowledgement, RingHeaders& send) {
  send.flags |= RingHeaders::kAcknowledges;
  send.ack_psn = acknowledgement.psn;
  send.ack_word = acknowledgement.word;
}

bool brought_by(const RingHeaders& send, Acknowledgement& out) {
  constexpr u8 kBoth = RingHeaders::kAreHere | RingHeaders::kAcknowledges;
  if ((send.flags & kBoth) != kBoth) return false;
  out = {.psn = PSN(send.ack_psn), .aeth = to_aeth(send.ack_word)};
  return true;
}

void record(const RingHeaders& headers, std::size_t payload_bytes, QPN qp, Time at,
            explain::PacketRecord& out) {
  constexpr u32 kSyndromeAt = 24;
  const OpcodeTraits& traits = traits_of(Opcode::from_byte(headers.opcode));
  const std::size_t padded = (payload_bytes + 3) & ~std::size_t{3};
  out.at = at;
  out.qp = qp;
  out.psn = PSN(headers.psn);
  out.transport_bytes = static_cast<u16>(traits.headers_size + padded);
  out.opcode = headers.opcode;
  out.syndrome = traits.aeth ? static_cast<u8>(headers.word >> kSyndromeAt)
                             : explain::PacketRecord::kNoSyndrome;
  out.direction = explain::Direction::kSent;
  out.reception = Reception::kAccepted;
  out.rule = 0;
}

}  // namespace verbena::host
