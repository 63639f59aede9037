#include "transport/iwarp/responder.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "base/check.h"
#include "memory/sg_walk.h"
#include "memory/touch.h"
#include "transport/iwarp/far_payload.h"
#include "transport/iwarp/terminate_reasons.h"

namespace verbena::iwarp {
namespace {

constexpr u32 kWordBytes = 8;

bool is_solicited(RDMAPOpcode opcode) {
  return opcode == RDMAPOpcode::kSendSolicited || opcode == RDMAPOpcode::kSendSolicitedInvalidate ||
         opcode == RDMAPOpcode::kImmediateDataSolicited;
}

bool invalidates(RDMAPOpcode opcode) {
  return opcode == RDMAPOpcode::kSendInvalidate || opcode == RDMAPOpcode::kSendSolicitedInvalidate;
}

u64 masked(u64 old_value, u64 new_value, u64 mask) {
  return (old_value & ~mask) | (new_value & mask);
}

u64 result_of(const RDMAPAtomicRequest& request, u64 value) {
  switch (request.opcode) {
    case AtomicOpcode::kFetchAdd: return value + request.add_or_swap;
    case AtomicOpcode::kSwap: return masked(value, request.add_or_swap, request.add_or_swap_mask);
    case AtomicOpcode::kCompareSwap:
      return ((value ^ request.compare) & request.compare_mask) == 0
                 ? masked(value, request.add_or_swap, request.add_or_swap_mask)
                 : value;
  }
  CHECK_UNREACHABLE();
}

CopyAtomic far_atomic_of(const RDMAPAtomicRequest& request) {
  CopyAtomic atomic{.op = CopyOp::kCompareSwap, .operand = request.add_or_swap};
  switch (request.opcode) {
    case AtomicOpcode::kFetchAdd: atomic.op = CopyOp::kFetchAdd; return atomic;
    case AtomicOpcode::kSwap: atomic.compare_mask = 0; break;
    case AtomicOpcode::kCompareSwap:
      atomic.compare = request.compare;
      atomic.compare_mask = request.compare_mask;
      break;
  }
  atomic.swap_mask = request.add_or_swap_mask;
  return atomic;
}

// Returns false if the word is not there.
bool execute(const RDMAPAtomicRequest& request, u64* word, u64& original) {
  return touch([&] {
    u64 value = __atomic_load_n(word, __ATOMIC_SEQ_CST);
    while (!__atomic_compare_exchange_n(word, &value, result_of(request, value), false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    }
    original = value;
  });
}

}  // namespace

Responder::Responder(const EngineParts& parts, EngineCounters& counters, ResponderFault& fault,
                     u8 max_ird)
    : qp_(parts.attributes),
      memory_(parts.memory),
      copies_(parts.receive_copies),
      counters_(counters),
      fault_(fault),
      receives_(parts, counters, fault),
      responses_(0),
      max_ird_(max_ird) {}

void Responder::on_state(QPState from) {
  receives_.on_state(from);
  if (qp_.state == QPState::kReset || qp_.state == QPState::kError) responses_.clear();
}

void Responder::begin(const StreamAgreement& agreement) {
  // One more: a READ of no bytes may say that the peer is ready. RFC 6581, 9
  ird_ = std::min<u32>(agreement.ird, max_ird_) + 1;
  responses_ = Ring<Response>(ird_);
  may_use_rfc7306_ = agreement.atomics_and_immediate;
  send_msn_ = read_msn_ = 1;
  send_offset_ = 0;
  in_send_ = in_write_ = false;
  write_bytes_ = 0;
}

TerminateReason Responder::refuse(Refusal refusal, MemoryFault fault, u32 stag, u64 to, u64 length,
                                  TerminateReason reason) {
  ++counters_.resp_remote_access_errors;
  fault_ = {.refusal = refusal,
            .remote_address = to,
            .length_bytes = length,
            .r_key = RKey{stag},
            .memory = fault,
            .key = memory_.describe(stag)};
  return reason;
}

std::optional<TerminateReason> Responder::check(const SegmentHeader& segment, RDMAPOpcode opcode) {
  switch (opcode) {
    case RDMAPOpcode::kWrite: return check_write(segment);
    case RDMAPOpcode::kSend:
    case RDMAPOpcode::kSendInvalidate:
    case RDMAPOpcode::kSendSolicited:
    case RDMAPOpcode::kSendSolicitedInvalidate: return check_send(segment);
    case RDMAPOpcode::kImmediateData:
    case RDMAPOpcode::kImmediateDataSolicited:
      return may_use_rfc7306_ ? check_immediate(segment) : std::optional(reason::kUnexpectedOpcode);
    case RDMAPOpcode::kReadRequest: return check_read_queue(segment, RDMAPReadRequest::kSize);
    case RDMAPOpcode::kAtomicRequest:
      return may_use_rfc7306_ ? check_read_queue(segment, RDMAPAtomicRequest::kSize)
                              : std::optional(reason::kUnexpectedOpcode);
    case RDMAPOpcode::kReadResponse:
    case RDMAPOpcode::kTerminate:
    case RDMAPOpcode::kAtomicResponse: break;  // not ours
  }
  CHECK_UNREACHABLE();
}

// --- WRITE

std::optional<TerminateReason> Responder::check_write(const SegmentHeader& segment) {
  const DDPTagged& ddp = segment.to_buffer;
  if (!in_write_) {
    in_write_ = true;
    write_bytes_ = 0;
    ++counters_.rx_write_requests;
  }
  const u32 length = segment.payload_bytes;
  if (length == 0) return std::nullopt;
  if (ddp.offset + (length - 1) < ddp.offset)
    return refuse(Refusal::kRemoteMemory, MemoryFault::kBounds, ddp.stag, ddp.offset, length,
                  reason::kTaggedOffsetWraps);
  if (!qp_.remote_access.has(Access::kRemoteWrite))
    return refuse(Refusal::kNotEnabled, MemoryFault::kAccess, ddp.stag, ddp.offset, length,
                  reason::kAccessRights);
  const Resolved to = place_of_write(segment, 0, length);
  if (to) return std::nullopt;
  return refuse(Refusal::kRemoteMemory, to.fault, ddp.stag, ddp.offset, length,
                reason_of_write(to.fault));
}

Resolved Responder::place_of_write(const SegmentHeader& segment, u32 offset, u32 length) const {
  const DDPTagged& ddp = segment.to_buffer;
  return memory_.remote(qp_.pd, qp_.qpn, RKey{ddp.stag}, ddp.offset + offset, length,
                        Access::kRemoteWrite);
}

// --- SEND

std::optional<TerminateReason> Responder::check_send(const SegmentHeader& segment) {
  const DDPUntagged& ddp = segment.to_queue;
  if (ddp.queue != kSendQueueNumber) return reason::kInvalidQueue;
  if (ddp.message != send_msn_) return reason::kInvalidMSN;
  if (ddp.offset != send_offset_) return reason::kInvalidMO;
  if (!in_send_)
    if (const auto refused = take_receive()) return refused;
  in_send_ = true;
  const u64 end = u64{send_offset_} + segment.payload_bytes;
  if (end <= receives_.held().length_bytes) return std::nullopt;
  ++counters_.resp_local_length_error;
  fault_ = {.refusal = Refusal::kReceiveTooSmall,
            .wr_id = receives_.held().wr_id,
            .message_bytes = end,
            .room_bytes = receives_.held().length_bytes};
  receives_.fail(WQEStatus::kLocalLength);
  return reason::kMessageTooLong;
}

std::optional<TerminateReason> Responder::take_receive() {
  if (receives_.accepting() && receives_.acquire()) return std::nullopt;
  return reason::kNoBuffer;
}

std::optional<TerminateReason> Responder::check_immediate(const SegmentHeader& segment) {
  const DDPUntagged& ddp = segment.to_queue;
  if (ddp.queue != kSendQueueNumber) return reason::kInvalidQueue;
  if (ddp.message != send_msn_ || in_send_) return reason::kInvalidMSN;
  if (ddp.offset != 0) return reason::kInvalidMO;
  if (!ddp.last || segment.payload_bytes != kImmediateDataBytes)
    return reason::kUnspecifiedOperation;
  return take_receive();
}

// --- READ requests and atomics

std::optional<TerminateReason> Responder::check_read_queue(const SegmentHeader& segment,
                                                           u32 bytes) {
  const DDPUntagged& ddp = segment.to_queue;
  if (ddp.queue != kReadQueueNumber) return reason::kInvalidQueue;
  if (ddp.message != read_msn_) return reason::kInvalidMSN;
  if (ddp.offset != 0) return reason::kInvalidMO;
  if (!ddp.last || segment.payload_bytes != bytes) return reason::kUnspecifiedOperation;
  if (responses_.size() < ird_) return std::nullopt;
  fault_ = {.refusal = Refusal::kTooManyReads};
  return reason::kNoBuffer;
}

std::optional<TerminateReason> Responder::on_read_request(Bytes payload) {
  const RDMAPReadRequest read = *RDMAPReadRequest::decode(payload);
  ++counters_.rx_read_requests;
  if (read.length != 0) {
    const u64 from = read.source_offset;
    if (from + (read.length - 1) < from || read.sink_offset + (read.length - 1) < read.sink_offset)
      return refuse(Refusal::kRemoteMemory, MemoryFault::kBounds, read.source_stag, from,
                    read.length, reason::kOffsetWraps);
    if (!qp_.remote_access.has(Access::kRemoteRead))
      return refuse(Refusal::kNotEnabled, MemoryFault::kAccess, read.source_stag, from, read.length,
                    reason::kAccessRights);
    const Resolved source = memory_.remote(qp_.pd, qp_.qpn, RKey{read.source_stag}, from,
                                           read.length, Access::kRemoteRead);
    if (!source)
      return refuse(Refusal::kRemoteMemory, source.fault, read.source_stag, from, read.length,
                    reason_of_read(source.fault));
  }
  respond({.read = read});
  return std::nullopt;
}

// A response shows that the requests before it have taken effect. RFC 5040, 5.5 (rules 3, 5 and 6)
void Responder::respond(Response response) {
  if (copies_ != nullptr) response.after = copies_->begun();
  responses_.push(response);
}

void Responder::mark_remote(u32 stag, u64 to, u64 length) {
  if (copies_ != nullptr)
    copies_->mark({.key = stag, .address = to, .length_bytes = static_cast<u32>(length)});
}

// Far memory finds the original later: the response waits for it.
bool Responder::execute_atomic(const RDMAPAtomicRequest& request, u8* at, Response& response) {
  if (is_here(at)) return execute(request, reinterpret_cast<u64*>(at), response.atomic.original);
  if (at == nullptr) return false;
  mark_remote(request.stag, request.offset, kWordBytes);
  if (memory_.copies().atomic(memory_.far(), copies_, at, far_atomic_of(request)) !=
      CopyResult::kDone)
    return false;
  response.far_atomic = copies_->begun();
  return true;
}

std::optional<TerminateReason> Responder::on_atomic_request(Bytes payload) {
  const std::optional<RDMAPAtomicRequest> request = RDMAPAtomicRequest::decode(payload);
  if (!request) return reason::kUnspecifiedOperation;
  ++counters_.rx_atomic_requests;
  if (!qp_.remote_access.has(Access::kRemoteAtomic))
    return refuse(Refusal::kNotEnabled, MemoryFault::kAccess, request->stag, request->offset,
                  kWordBytes, reason::kAccessRights);
  const Resolved word = memory_.remote(qp_.pd, qp_.qpn, RKey{request->stag}, request->offset,
                                       kWordBytes, Access::kRemoteAtomic);
  if (!word)
    return refuse(Refusal::kRemoteMemory, word.fault, request->stag, request->offset, kWordBytes,
                  reason_of_read(word.fault));
  if (request->offset % kWordBytes != 0 ||
      reinterpret_cast<std::uintptr_t>(word.data) % kWordBytes != 0)
    return refuse(Refusal::kUnaligned, MemoryFault::kNone, request->stag, request->offset,
                  kWordBytes, reason::kUnspecifiedOperation);
  Response response{.is_atomic = true, .atomic = {.identifier = request->identifier}};
  if (!execute_atomic(*request, word.data, response)) return reason::kStreamCatastrophic;
  respond(response);
  return std::nullopt;
}

// --- payload, and the end of a segment

std::optional<TerminateReason> Responder::place_write(const SegmentHeader& segment, u32 offset,
                                                      Bytes payload) {
  if (payload.empty()) return std::nullopt;
  const DDPTagged& ddp = segment.to_buffer;
  const Resolved to = place_of_write(segment, offset, static_cast<u32>(payload.size()));
  mark_remote(ddp.stag, ddp.offset + offset, payload.size());
  if (to && store_payload(memory_, to.data, payload, copies_) == MemoryFault::kNone)
    return std::nullopt;
  const MemoryFault fault = to ? MemoryFault::kGone : to.fault;
  return refuse(Refusal::kRemoteMemory, fault, ddp.stag, ddp.offset + offset, payload.size(),
                reason_of_write(fault));
}

// The segment is over, so the TERMINATE message does not repeat its header.
TerminateReason Responder::on_copy_failed(const CopyMark& mark) {
  if (!mark.is_receive)
    return refuse(Refusal::kRemoteMemory, MemoryFault::kGone, mark.key, mark.address,
                  mark.length_bytes, reason_of_write(MemoryFault::kGone));
  receives_.on_copy_failed(mark);
  return reason::kLocalCatastrophic;
}

std::optional<TerminateReason> Responder::place(const SegmentHeader& segment, RDMAPOpcode opcode,
                                                u32 offset, Bytes payload) {
  switch (opcode) {
    case RDMAPOpcode::kWrite: return place_write(segment, offset, payload);
    case RDMAPOpcode::kSend:
    case RDMAPOpcode::kSendInvalidate:
    case RDMAPOpcode::kSendSolicited:
    case RDMAPOpcode::kSendSolicitedInvalidate:
      if (receives_.write(u64{segment.to_queue.offset} + offset, payload)) return std::nullopt;
      return reason::kLocalCatastrophic;
    case RDMAPOpcode::kImmediateData:
    case RDMAPOpcode::kImmediateDataSolicited: immediate_ = load_be32(payload.data()); break;
    case RDMAPOpcode::kReadRequest: return on_read_request(payload);
    case RDMAPOpcode::kAtomicRequest: return on_atomic_request(payload);
    case RDMAPOpcode::kReadResponse:
    case RDMAPOpcode::kTerminate:
    case RDMAPOpcode::kAtomicResponse: CHECK_UNREACHABLE();
  }
  return std::nullopt;
}

std::optional<TerminateReason> Responder::finish(const SegmentHeader& segment, RDMAPOpcode opcode) {
  switch (opcode) {
    case RDMAPOpcode::kWrite:
      write_bytes_ += segment.payload_bytes;
      in_write_ = !segment.last();
      return std::nullopt;
    case RDMAPOpcode::kSend:
    case RDMAPOpcode::kSendInvalidate:
    case RDMAPOpcode::kSendSolicited:
    case RDMAPOpcode::kSendSolicitedInvalidate:
      send_offset_ += segment.payload_bytes;
      return segment.last() ? finish_send(segment, opcode) : std::nullopt;
    case RDMAPOpcode::kImmediateData:
    case RDMAPOpcode::kImmediateDataSolicited: complete_immediate(opcode); return std::nullopt;
    case RDMAPOpcode::kReadRequest:
    case RDMAPOpcode::kAtomicRequest: ++read_msn_; return std::nullopt;
    case RDMAPOpcode::kReadResponse:
    case RDMAPOpcode::kTerminate:
    case RDMAPOpcode::kAtomicResponse: break;
  }
  CHECK_UNREACHABLE();
}

std::optional<TerminateReason> Responder::finish_send(const SegmentHeader& segment,
                                                      RDMAPOpcode opcode) {
  const u32 stag = segment.to_queue.invalidate_stag;
  if (invalidates(opcode) &&
      memory_.invalidate(qp_.pd, qp_.qpn, RKey{stag}) != MemoryFault::kNone) {
    fault_ = {
        .refusal = Refusal::kInvalidate, .wr_id = receives_.held().wr_id, .r_key = RKey{stag}};
    receives_.fail(WQEStatus::kLocalAccess);
    return reason::kCannotInvalidate;
  }
  receives_.complete({.op = CompletionOp::kReceive,
                      .with_invalidate = invalidates(opcode),
                      .solicited = is_solicited(opcode),
                      .byte_length = send_offset_,
                      .immediate = invalidates(opcode) ? stag : 0,
                      .qp = qp_.qpn,
                      .source_qp = {}});
  ++send_msn_;
  send_offset_ = 0;
  in_send_ = false;
  return std::nullopt;
}

void Responder::complete_immediate(RDMAPOpcode opcode) {
  receives_.complete({.op = CompletionOp::kReceiveRDMAWithImmediate,
                      .with_immediate = true,
                      .solicited = is_solicited(opcode),
                      .byte_length = static_cast<u32>(write_bytes_),
                      .immediate = immediate_,
                      .qp = qp_.qpn,
                      .source_qp = {}});
  ++send_msn_;
}

// --- responses

bool Responder::response(u32 index, OutMessage& out) const {
  if (index >= responses_.size()) return false;
  const Response& response = responses_[index];
  if (copies_ != nullptr && !copies_->has_ended(response.after)) return false;
  out.request = OutMessage::kNoRequest;
  out.ends_request = false;
  if (response.is_atomic) {
    out.opcode = RDMAPOpcode::kAtomicResponse;
    RDMAPAtomicResponse atomic = response.atomic;
    if (response.far_atomic != 0)
      atomic.original = copies_->original(response.far_atomic).value_or(atomic.original);
    out.set_own(atomic);
    out.queue = kAtomicResponseQueueNumber;
    out.invalidate_stag = 0;
    return true;
  }
  const RDMAPReadRequest& read = response.read;
  out.opcode = RDMAPOpcode::kReadResponse;
  out.payload = OutMessage::Payload::kResponse;
  out.length = read.length;
  out.stag = read.sink_stag;
  out.to = read.sink_offset;
  out.source_stag = read.source_stag;
  out.source_offset = read.source_offset;
  out.max_segment =
      max_segment_of(memory_, memory_.remote(qp_.pd, qp_.qpn, RKey{read.source_stag},
                                             read.source_offset, read.length, Access::kRemoteRead));
  return true;
}

// Checked again for each segment: the key may have died since the request.
MemoryFault Responder::gather(const OutMessage& response, u32 offset, u32 length,
                              PayloadList& out) const {
  if (length == 0) return MemoryFault::kNone;
  const Resolved from =
      memory_.remote(qp_.pd, qp_.qpn, RKey{response.source_stag}, response.source_offset + offset,
                     length, Access::kRemoteRead);
  if (!from) return from.fault;
  if (copies_ != nullptr) copies_->read_for(response.msn);
  MemoryFault why = MemoryFault::kNone;
  const std::optional<Bytes> bytes =
      readable(memory_, from.data, length, response.length - offset - length, copies_, why);
  if (!bytes) return why;
  out.add_unstable(*bytes);
  return MemoryFault::kNone;
}

TerminateReason Responder::on_unreadable(const OutMessage& response, MemoryFault fault) {
  return refuse(Refusal::kRemoteMemory, fault, response.source_stag, response.source_offset,
                response.length, reason_of_read(fault));
}

}  // namespace verbena::iwarp
