#include "transport/uc/responder.h"

#include "memory/sg_walk.h"

namespace verbena {
namespace {

// IBTA 9.7.4.1.6, 9.8.2.2.2: First and Middle are full, Last has a byte at least, Only may be
// empty.
bool legal_payload(const OpcodeTraits& traits, std::size_t payload_bytes, u32 mtu_bytes) {
  if (!traits.last) return payload_bytes == mtu_bytes;
  return payload_bytes <= mtu_bytes && (traits.first || payload_bytes != 0);
}

}  // namespace

UCResponder::UCResponder(const EngineParts& parts, EngineCounters& counters, ResponderFault& fault)
    : qp_(parts.attributes),
      memory_(parts.memory),
      copies_(parts.receive_copies),
      counters_(counters),
      receives_(parts, counters, fault) {}

void UCResponder::on_state(QPState from) {
  receives_.on_state(from);
  if (qp_.state == QPState::kRTR) {
    expected_psn_ = qp_.rq_psn;
    established_ = established_event_ = false;
  }
  if (qp_.state == QPState::kReset || qp_.state == QPState::kError) message_ = Message::kNone;
  if (qp_.state == QPState::kReset) established_event_ = false;
}

void UCResponder::on_packet(const PacketView& packet, const RxContext&) {
  const BTH& bth = packet.headers.bth;
  const OpcodeTraits& traits = traits_of(bth.opcode);
  if (!receives_.accepting() || bth.opcode.service != Service::kUC || !traits.valid) {
    ++counters_.rx_dropped;
    return;
  }
  note_established();
  check_psn(bth.psn);
  const Message message = message_of(bth.opcode.op);
  if (traits.first) {
    abandon(WQEStatus::kRemoteInvalidRequest);  // a message without its Last. 9.8.2.2.3
    message_ = message;
    received_ = 0;
  } else if (message_ != message) {
    return drop(WQEStatus::kRemoteInvalidRequest);
  }
  const WQEStatus placed = place(packet, traits);
  if (placed != WQEStatus::kSuccess) return drop(placed);
  received_ += packet.payload.size();
  if (traits.last) finish(packet, traits);
}

UCResponder::Message UCResponder::message_of(Op op) {
  return op <= Op::kSendOnlyWithImmediate ? Message::kSend : Message::kRDMAWrite;
}

// Notes the first packet that arrives in RTR. IBTA 11.6.3.1
void UCResponder::note_established() {
  if (qp_.state != QPState::kRTR || established_) return;
  established_ = established_event_ = true;
}

// A gap ends the current message without an answer; the sequence continues behind this packet. IBTA
// 9.8.2.2.1
void UCResponder::check_psn(PSN psn) {
  if (psn != expected_psn_) {
    ++counters_.out_of_sequence;
    abandon(WQEStatus::kRemoteInvalidRequest);
  }
  expected_psn_ = psn.next();
}

void UCResponder::abandon(WQEStatus srq_status) {
  if (message_ == Message::kNone) return;
  message_ = Message::kNone;
  receives_.abandon(srq_status);
}

void UCResponder::drop(WQEStatus srq_status) {
  ++counters_.rx_dropped;
  abandon(srq_status);
}

WQEStatus UCResponder::place(const PacketView& packet, const OpcodeTraits& traits) {
  if (!legal_payload(traits, packet.payload.size(), bytes(qp_.path_mtu)))
    return WQEStatus::kRemoteInvalidRequest;
  return message_ == Message::kSend ? place_send(packet, traits) : place_write(packet, traits);
}

WQEStatus UCResponder::place_send(const PacketView& packet, const OpcodeTraits& traits) {
  if (traits.first && !receives_.acquire()) return WQEStatus::kRemoteInvalidRequest;
  if (received_ + packet.payload.size() > receives_.held().length_bytes) {
    ++counters_.resp_local_length_error;
    return WQEStatus::kLocalLength;
  }
  if (receives_.write(received_, packet.payload)) return WQEStatus::kSuccess;
  return receives_.accepting() ? WQEStatus::kRemoteInvalidRequest : WQEStatus::kLocalProtection;
}

// Checks every packet's bytes again: the key may have been invalidated since the first.
WQEStatus UCResponder::place_write(const PacketView& packet, const OpcodeTraits& traits) {
  if (traits.first && !open_write(packet.headers.reth)) return WQEStatus::kRemoteAccess;
  const u64 size = packet.payload.size();
  const u64 missing = reth_.dma_length - received_;  // never below 0: see the next line
  if (traits.last ? size != missing : size >= missing) return WQEStatus::kRemoteInvalidRequest;
  if (traits.imm_dt && !receives_.acquire()) return WQEStatus::kRemoteInvalidRequest;
  const Resolved to = memory_.remote(qp_.pd, qp_.qpn, reth_.r_key,
                                     reth_.virtual_address + received_, size, Access::kRemoteWrite);
  if (copies_ != nullptr) copies_->mark({.psn = packet.headers.bth.psn.value()});
  const MemoryFault fault =
      to ? store_payload(memory_, to.data, packet.payload, copies_) : to.fault;
  if (fault == MemoryFault::kLater) return WQEStatus::kRemoteInvalidRequest;  // counts as lost
  if (fault != MemoryFault::kNone) {
    ++counters_.resp_remote_access_errors;
    return WQEStatus::kRemoteAccess;
  }
  return WQEStatus::kSuccess;
}

// Checks the whole range before its first byte is written. IBTA 9.7.4.1.5, 9.8.2.2.2.
bool UCResponder::open_write(const RETH& reth) {
  reth_ = reth;
  const bool granted = reth.dma_length <= kMaxMessageSize &&
                       qp_.remote_access.has(Access::kRemoteWrite) &&
                       memory_.remote(qp_.pd, qp_.qpn, reth.r_key, reth.virtual_address,
                                      reth.dma_length, Access::kRemoteWrite);
  ++(granted ? counters_.rx_write_requests : counters_.resp_remote_access_errors);
  return granted;
}

// Nobody is told that a WRITE has failed. IBTA 9.8.2.2.3
void UCResponder::on_copy_failed(const CopyMark& mark) {
  if (mark.is_receive) return receives_.on_copy_failed(mark);
  ++counters_.resp_remote_access_errors;
}

void UCResponder::finish(const PacketView& packet, const OpcodeTraits& traits) {
  const bool write = message_ == Message::kRDMAWrite;
  message_ = Message::kNone;
  if (write && !traits.imm_dt) return;
  receives_.complete(
      {.op = write ? CompletionOp::kReceiveRDMAWithImmediate : CompletionOp::kReceive,
       .with_immediate = traits.imm_dt,
       .solicited = packet.headers.bth.solicited_event,
       .p_key_index = qp_.p_key_index,
       .byte_length = static_cast<u32>(received_),
       .immediate = traits.imm_dt ? packet.headers.imm.value : 0,
       .qp = qp_.qpn,
       .source_qp = {}});
}

std::optional<EngineEvent> UCResponder::poll_event() {
  if (!established_event_) return receives_.poll_event();
  established_event_ = false;
  return EngineEvent::kCommunicationEstablished;
}

}  // namespace verbena
