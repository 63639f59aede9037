#include "transport/rc/responder.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "memory/sg_walk.h"
#include "memory/touch.h"
#include "transport/completions.h"

namespace verbena {

namespace {

bool is_send(Op op) {
  switch (op) {
    case Op::kSendFirst:
    case Op::kSendMiddle:
    case Op::kSendLast:
    case Op::kSendLastWithImmediate:
    case Op::kSendLastWithInvalidate:
    case Op::kSendOnly:
    case Op::kSendOnlyWithImmediate:
    case Op::kSendOnlyWithInvalidate: return true;
    default: return false;  // every other operation of table 38
  }
}

// Returns true for operations whose response is more than an ACK, and acknowledges them too.
bool answers_itself(Op op) {
  switch (op) {
    case Op::kRDMAReadRequest:
    case Op::kCmpSwap:
    case Op::kFetchAdd:
    case Op::kFlush:
    case Op::kAtomicWrite: return true;
    default: return false;  // every other operation of table 38
  }
}

u32 packets_of(u32 length_bytes, u32 mtu) {
  return std::max(1u, static_cast<u32>((u64{length_bytes} + mtu - 1) / mtu));
}

// The iova is aligned. If the memory behind it is not, no CPU instruction is atomic on it.
bool is_word(const u8* data) { return reinterpret_cast<std::uintptr_t>(data) % kAtomicBytes == 0; }

// Returns the status of the receive's completion, and the NAK's code.
std::pair<WQEStatus, NAKCode> told_as(Refusal why) {
  switch (why) {
    case Refusal::kReceiveTooSmall: return {WQEStatus::kLocalLength, NAKCode::kInvalidRequest};
    case Refusal::kReceiveMemory:
      return {WQEStatus::kLocalProtection, NAKCode::kRemoteOperationalError};
    case Refusal::kInvalidate: return {WQEStatus::kLocalAccess, NAKCode::kRemoteAccessError};
    case Refusal::kNone:
    case Refusal::kOpcodeSequence:
    case Refusal::kLength:
    case Refusal::kNotEnabled:
    case Refusal::kUnaligned:
    case Refusal::kFlushKind:
    case Refusal::kTooManyReads:
    case Refusal::kUnknownSRQ:
    case Refusal::kRemoteMemory: break;
  }
  CHECK_UNREACHABLE();  // they use no receive
}

// Returns false if the word is not accessible.
bool add_or_swap(u64* word, const AtomicETH& eth, bool swap, u64& original) {
  original = eth.compare;
  return touch([&] {
    if (swap)
      __atomic_compare_exchange_n(word, &original, eth.swap_or_add, false, __ATOMIC_SEQ_CST,
                                  __ATOMIC_SEQ_CST);
    else
      original = __atomic_fetch_add(word, eth.swap_or_add, __ATOMIC_SEQ_CST);
  });
}

}  // namespace

RCResponder::RCResponder(const EngineParts& parts, const RCLimits& limits, EngineCounters& counters,
                         ResponderFault& fault)
    : qp_(parts.attributes),
      memory_(parts.memory),
      receive_queue_(parts.receive_queue),
      shared_(parts.shared_receive_queue),
      srq_pd_(parts.srq_pd),
      xrc_(parts.xrc_receives),
      local_packets_(parts.local_packets),
      local_progress_(parts.local_progress),
      limits_(limits),
      counters_(counters),
      fault_(fault),
      copies_(parts.receive_copies),
      responses_(limits.max_rd_atomic, parts.receive_copies) {}

void RCResponder::on_state(QPState from) {
  switch (qp_.state) {
    case QPState::kReset:
      responses_.clear();
      reorder_buffer_.reset();
      msn_ = MSN(0);
      give_back_receives();
      nak_sent_ = failed_ = advertised_zero_ = established_ = false;
      message_ = Message::kNone;
      fault_ = {};
      offset_ = 0;
      xrc_srq_ = 0;
      event_.reset();
      fatal_pending_ = false;
      if (!shared_) receive_queue_.clear();
      return;
    case QPState::kRTR:
      if (from != QPState::kInit) return;
      expect(qp_.rq_psn);
      make_room();
      return;
    case QPState::kError:
      if (!failed_) responses_.clear();  // the application asked for Error: no more responses
      failed_ = true;
      return;
    case QPState::kInit:
    case QPState::kRTS:
    case QPState::kSQD:
    case QPState::kSQE: return;
  }
}

// --- order. IBTA 9.7.4.1.2, table 48

void RCResponder::on_request(const PacketView& packet) {
  if (failed_) return;
  const u32 ahead = expected_.distance_to(packet.headers.bth.psn);
  if (ahead == 0) {
    nak_sent_ = false;
    if (!established_ && qp_.state == QPState::kRTR)
      event_ = EngineEvent::kCommunicationEstablished;
    established_ = true;
    execute(packet);
    return execute_kept();
  }
  if (ahead >= PSN::kHalf) return on_duplicate(packet);
  ++counters_.out_of_sequence;
  if (keeps_for(packet)) return on_early(packet, ahead);
  sequence_nak();
}

void RCResponder::execute(const PacketView& packet) {
  const Opcode opcode = packet.headers.bth.opcode;
  const OpcodeTraits& traits = traits_of(opcode);
  if (!in_sequence(traits, opcode.op)) return invalid_request(packet, Refusal::kOpcodeSequence);
  if (traits.first && !choose_srq(packet.headers.xrceth.xrc_srq))
    return invalid_request(packet, Refusal::kUnknownSRQ);
  switch (opcode.op) {
    case Op::kRDMAReadRequest: return on_read(packet);
    case Op::kCmpSwap:
    case Op::kFetchAdd: return on_atomic(packet);
    case Op::kFlush: return on_flush(packet);
    case Op::kAtomicWrite: return on_atomic_write(packet);
    default: break;  // SENDs and WRITEs
  }
  if (!right_length(traits, packet.payload.size()))
    return invalid_request(packet, Refusal::kLength);
  if (is_send(opcode.op)) return on_send(packet, traits);
  on_write(packet, traits);
}

// Packets that may be refused come one by one, so that the NAK has the PSN of the refused one.
bool RCResponder::take_train(const PacketView& packet, u32 packets) {
  const Opcode opcode = packet.headers.bth.opcode;
  const OpcodeTraits& traits = traits_of(opcode);
  const bool is_middle = traits.request && traits.payload && !traits.first && !traits.last;
  const u64 end = offset_ + packet.payload.size();
  const u64 room = message_ == Message::kSend ? receive_.length_bytes : write_.dma_length;
  if (!is_middle || !in_sequence(traits, opcode.op) || end >= room ||
      packet.payload.size() != std::size_t{packets} * mtu() || failed_ ||
      packet.headers.bth.psn != expected_ || reorder_buffer_ != nullptr)
    return false;
  nak_sent_ = false;
  message_ == Message::kSend ? on_send(packet, traits, packets) : on_write(packet, traits, packets);
  return true;
}

// First and Only begin a message, Middle and Last continue one of the same kind. Table 49
bool RCResponder::in_sequence(const OpcodeTraits& traits, Op op) const {
  if (traits.first || !traits.payload) return message_ == Message::kNone;
  return message_ == (is_send(op) ? Message::kSend : Message::kWrite);
}

// IBTA 9.7.4.1.6: First and Middle fill the path MTU; Last has at least one byte.
bool RCResponder::right_length(const OpcodeTraits& traits, std::size_t payload) const {
  if (!traits.last) return payload == mtu();
  return payload <= mtu() && (traits.first || payload != 0);
}

// `psns` PSNs are executed. Acknowledges if the packet asks for it.
void RCResponder::accept(const PacketView& packet, u32 psns, bool message_done) {
  if (psns > 1) forget_kept(psns);
  expect(expected_.advanced(psns));
  if (message_done) {
    msn_ = msn_.next();
    message_ = Message::kNone;
    offset_ = 0;
  }
  if (!answers_itself(packet.headers.bth.opcode.op) && packet.headers.bth.ack_req) acknowledge();
}

// Acknowledges to a peer on the same host at once, unless other responses come first.
void RCResponder::acknowledge() {
  if (local_packets_ != nullptr && responses_.empty() && has_executed_all() &&
      local_packets_->acknowledge(qp_, expected_.previous(), {.value = credits(), .msn = msn_}))
    ++counters_.local_acknowledgements;
  else
    responses_.acknowledge(expected_.previous(), msn_);
}

// --- SEND

// Returns nullptr if the SRQ was destroyed since the message began.
ReceiveQueue* RCResponder::receive_source() const {
  if (xrc_ == nullptr) return &receive_queue_;
  const std::optional<XRCReceiveQueue> srq = xrc_->find(xrc_srq_);
  return srq ? srq->queue : nullptr;
}

// Receives of an own queue need no handling: that queue is cleared.
void RCResponder::give_back_receives() {
  const u32 count = (holds_receive_ ? 1u : 0u) + (cqe_ ? 1u : 0u);
  holds_receive_ = false;
  cqe_.reset();
  if (count == 0 || (!shared_ && xrc_ == nullptr)) return;
  if (ReceiveQueue* const source = receive_source()) source->free_entries(count);
}

// XRC: returns false if the domain has no such SRQ.
bool RCResponder::choose_srq(u32 number) {
  if (xrc_ == nullptr) return true;
  const std::optional<XRCReceiveQueue> srq = xrc_->find(number);
  if (!srq) return false;
  xrc_srq_ = number;
  xrc_pd_ = srq->pd;
  return true;
}

bool RCResponder::take_receive() {
  if (holds_receive_) return true;
  ReceiveQueue* const source = receive_source();
  holds_receive_ = source != nullptr && source->take(receive_);
  return holds_receive_;
}

void RCResponder::on_send(const PacketView& packet, const OpcodeTraits& traits, u32 packets) {
  if (traits.first && !take_receive()) return rnr_nak();
  const u64 end = offset_ + packet.payload.size();
  if (end > receive_.length_bytes) {
    ++counters_.resp_local_length_error;
    return receive_error(packet, Refusal::kReceiveTooSmall);
  }
  mark_receive();
  const MemoryFault fault =
      scatter(memory_, receive_pd(), receive_.sg_list(), offset_, packet.payload, copies_);
  if (fault == MemoryFault::kLater) return;  // counts as lost
  if (fault != MemoryFault::kNone) return receive_error(packet, Refusal::kReceiveMemory);
  if (traits.ieth && !invalidate(packet.headers.ieth.r_key))
    return receive_error(packet, Refusal::kInvalidate);
  message_ = Message::kSend;
  offset_ = end;
  if (traits.last) complete_receive(CompletionOp::kReceive, static_cast<u32>(end), packet);
  accept(packet, packets, traits.last);
}

bool RCResponder::invalidate(RKey key) {
  return memory_.invalidate(request_pd(), qp_.qpn, key) == MemoryFault::kNone;
}

void RCResponder::complete_receive(CompletionOp op, u32 length, const PacketView& packet) {
  CHECK(!cqe_);
  describe_receive(op, receive_.wr_id, length, packet, cqe_.emplace());
  holds_receive_ = false;
}

// Assigns every field but the time: `out` may hold an older completion.
void RCResponder::describe_receive(CompletionOp op, u64 wr_id, u32 length, const PacketView& packet,
                                   CQE& out) const {
  const BTH& bth = packet.headers.bth;
  const OpcodeTraits& traits = traits_of(bth.opcode);
  out.wr_id = wr_id;
  out.status = WQEStatus::kSuccess;
  out.op = op;
  out.with_immediate = traits.imm_dt;
  out.with_invalidate = traits.ieth;
  out.with_grh = false;
  out.solicited = bth.solicited_event;
  out.service_level = qp_.path.service_level;
  out.p_key_index = qp_.p_key_index;
  out.source_lid = 0;
  out.byte_length = length;
  out.immediate = traits.imm_dt ? packet.headers.imm.value
                  : traits.ieth ? packet.headers.ieth.r_key.value
                                : 0;
  out.qp = qp_.qpn;
  out.source_qp = qp_.dest_qp;
  out.srq = xrc_srq_;
  out.entries = 1;
}

// --- RDMA WRITE

// Checks the whole message once, and returns its first byte in `to`. Each later packet checks its
// own bytes again, because a key may be invalidated in between. Returns false if the message was
// refused.
bool RCResponder::begin_write(const PacketView& packet, Resolved& to) {
  const RETH& reth = packet.headers.reth;
  const OpcodeTraits& traits = traits_of(packet.headers.bth.opcode);
  const bool fits = traits.last ? reth.dma_length == packet.payload.size()
                                : reth.dma_length > packet.payload.size();
  const bool enabled = qp_.remote_access.has(Access::kRemoteWrite);
  if (!enabled || !fits || reth.dma_length > kMaxMessageSize) {
    invalid_request(packet, enabled ? Refusal::kLength : Refusal::kNotEnabled);
    return false;
  }
  to = memory_.remote(request_pd(), qp_.qpn, reth.r_key, reth.virtual_address, reth.dma_length,
                      Access::kRemoteWrite);
  if (!to) {
    access_error(packet, to.fault);
    return false;
  }
  write_ = reth;
  return true;
}

void RCResponder::on_write(const PacketView& packet, const OpcodeTraits& traits, u32 packets) {
  Resolved to;
  if (traits.first && !begin_write(packet, to)) return;
  const u64 end = offset_ + packet.payload.size();
  if (traits.last ? end != write_.dma_length : end >= write_.dma_length)
    return invalid_request(packet, Refusal::kLength);
  if (traits.imm_dt && !take_receive()) {
    if (traits.first) offset_ = 0;
    return rnr_nak();
  }
  if (!packet.payload.empty()) {
    if (!traits.first)
      to = memory_.remote(request_pd(), qp_.qpn, write_.r_key, write_.virtual_address + offset_,
                          packet.payload.size(), Access::kRemoteWrite);
    if (!to) return access_error(packet, to.fault);
    if (!is_here(to.data)) mark_remote(write_.r_key, write_.virtual_address, write_.dma_length);
    const MemoryFault fault = store_payload(memory_, to.data, packet.payload, copies_);
    if (fault == MemoryFault::kLater) return;  // counts as lost
    if (fault != MemoryFault::kNone) return access_error(packet, fault);
  }
  if (traits.first) ++counters_.rx_write_requests;
  message_ = Message::kWrite;
  offset_ = end;
  if (traits.imm_dt)
    complete_receive(CompletionOp::kReceiveRDMAWithImmediate, write_.dma_length, packet);
  accept(packet, packets, traits.last);
}

// --- READs, atomics, FLUSHes and ATOMIC WRITEs

bool RCResponder::room_for_rd_atomic(const PacketView& packet) {
  if (responses_.pending_rd_atomic() < qp_.max_dest_rd_atomic) return true;
  invalid_request(packet, Refusal::kTooManyReads);  // more than was agreed. IBTA 9.7.4.1.8
  return false;
}

void RCResponder::on_read(const PacketView& packet) {
  const RETH& reth = packet.headers.reth;
  if (!qp_.remote_access.has(Access::kRemoteRead))
    return invalid_request(packet, Refusal::kNotEnabled);
  if (reth.dma_length > kMaxMessageSize) return invalid_request(packet, Refusal::kLength);
  const Resolved at = memory_.remote(request_pd(), qp_.qpn, reth.r_key, reth.virtual_address,
                                     reth.dma_length, Access::kRemoteRead);
  if (!at) return access_error(packet, at.fault);
  if (!room_for_rd_atomic(packet) || responses_.full()) return;
  ++counters_.rx_read_requests;
  ResponderResource resource;
  resource.kind = Response::Kind::kRead;
  resource.first_psn = expected_;
  resource.packets = packets_of(reth.dma_length, mtu());
  resource.address = reth.virtual_address;
  resource.r_key = reth.r_key;
  resource.pd = request_pd();
  resource.length_bytes = reth.dma_length;
  accept(packet, resource.packets, true);
  resource.msn = msn_;
  responses_.execute(resource, qp_.max_dest_rd_atomic);
}

// Far memory finds the original later: the response waits for it.
MemoryFault RCResponder::execute_atomic(const PacketView& packet, u8* at,
                                        ResponderResource& resource) {
  const AtomicETH& eth = packet.headers.atomic;
  const bool swap = packet.headers.bth.opcode.op == Op::kCmpSwap;
  if (is_here(at))
    return add_or_swap(reinterpret_cast<u64*>(at), eth, swap, resource.original)
               ? MemoryFault::kNone
               : fault_of_touch();
  mark_remote(eth.r_key, eth.virtual_address, kAtomicBytes);
  const CopyResult result =
      memory_.copies().atomic(memory_.far(), copies_, at,
                              {.op = swap ? CopyOp::kCompareSwap : CopyOp::kFetchAdd,
                               .compare = eth.compare,
                               .operand = eth.swap_or_add});
  if (result == CopyResult::kLater) return MemoryFault::kLater;
  if (result == CopyResult::kGone) return MemoryFault::kGone;
  resource.far_atomic = copies_->begun();
  return MemoryFault::kNone;
}

void RCResponder::on_atomic(const PacketView& packet) {
  const AtomicETH& eth = packet.headers.atomic;
  if (!qp_.remote_access.has(Access::kRemoteAtomic))
    return invalid_request(packet, Refusal::kNotEnabled);
  if (eth.virtual_address % kAtomicBytes != 0) return invalid_request(packet, Refusal::kUnaligned);
  const Resolved at = memory_.remote(request_pd(), qp_.qpn, eth.r_key, eth.virtual_address,
                                     kAtomicBytes, Access::kRemoteAtomic);
  if (!at) return access_error(packet, at.fault);
  if (!is_word(at.data)) return invalid_request(packet, Refusal::kUnaligned);
  if (!room_for_rd_atomic(packet) || responses_.full()) return;
  ResponderResource resource;
  resource.kind = Response::Kind::kAtomic;
  resource.first_psn = expected_;
  const MemoryFault fault = execute_atomic(packet, at.data, resource);
  if (fault == MemoryFault::kLater) return;  // counts as lost
  if (fault != MemoryFault::kNone) return access_error(packet, fault);
  ++counters_.rx_atomic_requests;
  accept(packet, 1, true);
  resource.msn = msn_;
  responses_.execute(resource, qp_.max_dest_rd_atomic);
}

// --- FLUSH and ATOMIC WRITE. Annex A19

// An empty READ response answers the request, and its duplicates.
void RCResponder::confirm(const PacketView& packet) {
  ResponderResource resource;
  resource.kind = Response::Kind::kConfirmation;
  resource.first_psn = expected_;
  accept(packet, 1, true);
  resource.msn = msn_;
  responses_.execute(resource, qp_.max_dest_rd_atomic);
}

MemoryFault RCResponder::flush_fault(const FETH& feth, const RETH& reth, Access need) const {
  const MemoryFault fault = memory_.remote_whole(request_pd(), qp_.qpn, reth.r_key, need);
  if (fault != MemoryFault::kNone || feth.selectivity == FlushSelectivity::kRegion) return fault;
  return memory_
      .remote(request_pd(), qp_.qpn, reth.r_key, reth.virtual_address, reth.dma_length, need)
      .fault;
}

// Requests execute in order, by a CPU with which all others are coherent. Earlier writes are
// visible as soon as they have left this core's store buffer.
void RCResponder::on_flush(const PacketView& packet) {
  const FETH& feth = packet.headers.feth;
  const bool legal =
      (feth.global || feth.persistent) && (feth.selectivity == FlushSelectivity::kRange ||
                                           feth.selectivity == FlushSelectivity::kRegion);
  if (!legal) return invalid_request(packet, Refusal::kFlushKind);
  const bool allowed = (!feth.global || qp_.remote_access.has(Access::kFlushGlobal)) &&
                       (!feth.persistent || qp_.remote_access.has(Access::kFlushPersistent));
  if (!allowed) return invalid_request(packet, Refusal::kNotEnabled);
  for (const Access need : {Access::kFlushGlobal, Access::kFlushPersistent}) {
    const bool is_asked = need == Access::kFlushGlobal ? feth.global : feth.persistent;
    if (!is_asked) continue;
    const MemoryFault fault = flush_fault(feth, packet.headers.reth, need);
    if (fault != MemoryFault::kNone) return access_error(packet, fault);
  }
  if (!room_for_rd_atomic(packet) || responses_.full()) return;
  std::atomic<bool> barrier{false};
  (void)barrier.exchange(true);  // empties it; ThreadSanitizer does not understand a fence
  confirm(packet);
}

void RCResponder::on_atomic_write(const PacketView& packet) {
  const RETH& reth = packet.headers.reth;
  if (!qp_.remote_access.has(Access::kRemoteWrite))
    return invalid_request(packet, Refusal::kNotEnabled);
  if (reth.dma_length != kAtomicBytes || packet.payload.size() != kAtomicBytes)
    return invalid_request(packet, Refusal::kLength);
  if (reth.virtual_address % kAtomicBytes != 0) return invalid_request(packet, Refusal::kUnaligned);
  const Resolved at = memory_.remote(request_pd(), qp_.qpn, reth.r_key, reth.virtual_address,
                                     kAtomicBytes, Access::kRemoteWrite);
  if (!at) return access_error(packet, at.fault);
  if (at.data == nullptr) return access_error(packet, MemoryFault::kAccess);
  if (!is_word(at.data)) return invalid_request(packet, Refusal::kUnaligned);
  if (!room_for_rd_atomic(packet) || responses_.full()) return;
  // An aligned word is stored at once, here and in far memory.
  if (!is_here(at.data)) mark_remote(reth.r_key, reth.virtual_address, kAtomicBytes);
  const MemoryFault fault = store_payload(memory_, at.data, packet.payload, copies_);
  if (fault == MemoryFault::kLater) return;  // counts as lost
  if (fault != MemoryFault::kNone) return access_error(packet, fault);
  ++counters_.rx_write_requests;
  confirm(packet);
}

// --- duplicates. IBTA 9.7.4.1.2, 9.7.5.1.2

void RCResponder::on_duplicate(const PacketView& packet) {
  ++counters_.duplicate_request;
  const PSN psn = packet.headers.bth.psn;
  switch (packet.headers.bth.opcode.op) {
    case Op::kRDMAReadRequest: return on_duplicate_read(packet);
    case Op::kCmpSwap:
    case Op::kFetchAdd:
    case Op::kFlush:
    case Op::kAtomicWrite: {
      const ResponderResource* saved = responses_.find(psn);
      if (saved != nullptr && saved->kind != Response::Kind::kRead)
        responses_.repeat(*saved, psn, 0, 0);
      return;
    }
    default: break;  // SENDs and WRITEs
  }
  if (packet.headers.bth.ack_req) responses_.acknowledge(expected_.previous(), msn_);
  if (keeps_for(packet)) tell_of_kept();
}

// The repeated request must lie inside the original one, to the byte. By 9.7.5.1.2 it may start at
// any of the original's PSNs.
void RCResponder::on_duplicate_read(const PacketView& packet) {
  const RETH& reth = packet.headers.reth;
  const ResponderResource* saved = responses_.find(packet.headers.bth.psn);
  if (saved == nullptr || saved->kind != Response::Kind::kRead || reth.r_key != saved->r_key)
    return;
  const u64 skipped = u64{saved->first_psn.distance_to(packet.headers.bth.psn)} * mtu();
  if (reth.virtual_address != saved->address + skipped || skipped > saved->length_bytes ||
      reth.dma_length > saved->length_bytes - skipped)
    return;
  if (keeps_for(packet))
    responses_.repeat_part(*saved, packet.headers.bth.psn, reth.virtual_address, reth.dma_length);
  else
    responses_.repeat(*saved, packet.headers.bth.psn, reth.virtual_address, reth.dma_length);
}

// --- refusals. IBTA 9.9.3, table 58

void RCResponder::rnr_nak() {
  ++counters_.rnr_naks_sent;
  nak_sent_ = true;
  responses_.negative(expected_, msn_, AETHKind::kRNRNAK, qp_.min_rnr_timer);
}

void RCResponder::sequence_nak() {
  if (nak_sent_) return;  // one NAK for each ePSN. 9.7.5.2.8
  nak_sent_ = true;
  responses_.negative(expected_, msn_, AETHKind::kNAK, static_cast<u8>(NAKCode::kPSNSequenceError));
}

void RCResponder::invalid_request(const PacketView& packet, Refusal why) {
  note_fault(packet, why);
  nak_and_fail(NAKCode::kInvalidRequest, EngineEvent::kRequestError);
}

void RCResponder::access_error(const PacketView& packet, MemoryFault why) {
  note_fault(packet, Refusal::kRemoteMemory);
  fault_.memory = why;
  fault_.key = memory_.describe(fault_.r_key.value);
  ++counters_.resp_remote_access_errors;
  nak_and_fail(NAKCode::kRemoteAccessError, EngineEvent::kAccessError);
}

// The responses to earlier requests still leave; nothing behind the failed one is answered.
void RCResponder::on_copy_failed(const CopyMark& mark) {
  if (failed_) return;
  const PSN psn(mark.psn);
  fault_ = {.refusal = mark.is_receive ? Refusal::kReceiveMemory : Refusal::kRemoteMemory,
            .opcode = {Service::kRC, mark.is_receive ? Op::kSendOnly : Op::kRDMAWriteOnly},
            .remote_address = mark.address,
            .length_bytes = mark.length_bytes,
            .r_key = RKey{mark.key},
            .memory = MemoryFault::kGone,
            .key = memory_.describe(mark.key)};
  ++(mark.is_receive ? counters_.resp_cqe_error : counters_.resp_remote_access_errors);
  responses_.drop_from(psn);
  const NAKCode code =
      mark.is_receive ? NAKCode::kRemoteOperationalError : NAKCode::kRemoteAccessError;
  responses_.negative(psn, msn_, AETHKind::kNAK, static_cast<u8>(code));
  failed_ = fatal_pending_ = true;
  if (!mark.is_receive) event_ = EngineEvent::kAccessError;
  if (mark.is_receive && fills_held_receive(psn)) fail_receive(WQEStatus::kLocalProtection);
}

// The completion of the message's receive reports the error.
void RCResponder::receive_error(const PacketView& packet, Refusal why) {
  note_fault(packet, why);
  if (why == Refusal::kReceiveMemory)
    fault_.refused = find_refused(memory_, receive_pd(), receive_.sg_list(), Access::kLocalWrite);
  const auto [status, code] = told_as(why);
  ++counters_.resp_cqe_error;
  fail_receive(status);
  nak_and_fail(code, std::nullopt);
}

void RCResponder::fail_receive(WQEStatus status) {
  CHECK(holds_receive_ && !cqe_);
  cqe_ = receive_cqe(receive_.wr_id, qp_, status);
  cqe_->srq = xrc_srq_;
  holds_receive_ = false;
}

void RCResponder::note_fault(const PacketView& packet, Refusal why) {
  const Opcode opcode = packet.headers.bth.opcode;
  const OpcodeTraits& traits = traits_of(opcode);
  fault_ = {.refusal = why,
            .opcode = opcode,
            .wr_id = holds_receive_ ? receive_.wr_id : 0,
            .message_bytes = offset_ + packet.payload.size(),
            .room_bytes = holds_receive_ ? receive_.length_bytes : 0};
  if (traits.atomic_eth) {
    fault_.remote_address = packet.headers.atomic.virtual_address;
    fault_.length_bytes = kAtomicBytes;
    fault_.r_key = packet.headers.atomic.r_key;
  } else if (traits.ieth) {
    fault_.r_key = packet.headers.ieth.r_key;
  } else if (traits.reth || message_ == Message::kWrite) {
    const RETH& reth = traits.reth ? packet.headers.reth : write_;
    fault_.remote_address = reth.virtual_address;
    fault_.length_bytes = reth.dma_length;
    fault_.r_key = reth.r_key;
  }
}

void RCResponder::nak_and_fail(NAKCode code, std::optional<EngineEvent> event) {
  responses_.negative(expected_, msn_, AETHKind::kNAK, static_cast<u8>(code));
  failed_ = true;
  fatal_pending_ = true;
  if (event) event_ = event;
}

bool RCResponder::on_receive_posted() {
  if (!advertised_zero_ || failed_) return false;
  responses_.acknowledge(expected_.previous(), msn_);  // unsolicited: new credits. 9.7.7.2.2
  return true;
}

// --- completions

bool RCResponder::poll_cqe(CQE& out) {
  if (cqe_) {
    out = *cqe_;
    cqe_.reset();
    return true;
  }
  execute_kept();
  if (cqe_) return poll_cqe(out);
  if (qp_.state != QPState::kError) return false;
  if (holds_receive_) {
    holds_receive_ = false;
    out = receive_cqe(receive_.wr_id, qp_, WQEStatus::kFlushed);
    out.srq = xrc_srq_;
    return true;
  }
  if (shared_ || receive_queue_.empty()) return false;
  out = receive_cqe(receive_queue_.pop_wr_id(), qp_, WQEStatus::kFlushed);
  return true;
}

std::optional<EngineEvent> RCResponder::poll_event() {
  if (event_) {
    const EngineEvent event = *event_;
    event_.reset();
    return event;
  }
  if (!fatal_pending_) return std::nullopt;
  fatal_pending_ = false;
  return EngineEvent::kFatal;
}

}  // namespace verbena
