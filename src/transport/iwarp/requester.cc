#include "transport/iwarp/requester.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "base/check.h"
#include "memory/sg_walk.h"
#include "transport/completions.h"
#include "transport/iwarp/far_payload.h"
#include "transport/iwarp/terminate_reasons.h"
#include "transport/local_operations.h"
#include "transport/send_payload.h"

namespace verbena::iwarp {
namespace {

constexpr u32 kAtomicBytes = 8;

bool is_atomic(SendOp op) { return op == SendOp::kCompareSwap || op == SendOp::kFetchAdd; }

// Returns true if RDMAP has the operation. A SEND has no immediate data, and there is no FLUSH.
bool is_offered(SendOp op, bool rfc7306) {
  switch (op) {
    case SendOp::kSend:
    case SendOp::kSendWithInvalidate:
    case SendOp::kRDMAWrite:
    case SendOp::kRDMARead:
    case SendOp::kBindMW:
    case SendOp::kLocalInvalidate: return true;
    case SendOp::kRDMAWriteWithImmediate:
    case SendOp::kCompareSwap:
    case SendOp::kFetchAdd: return rfc7306;
    case SendOp::kSendWithImmediate:
    case SendOp::kFlush:
    case SendOp::kAtomicWrite: return false;
  }
  return false;
}

RDMAPOpcode send_opcode(const SendRequest& wr) {
  if (wr.op == SendOp::kSendWithInvalidate)
    return wr.solicited ? RDMAPOpcode::kSendSolicitedInvalidate : RDMAPOpcode::kSendInvalidate;
  return wr.solicited ? RDMAPOpcode::kSendSolicited : RDMAPOpcode::kSend;
}

// Returns the part-th element that is not empty, or nullptr if there are fewer.
const SGE* nonempty_sge(std::span<const SGE> list, u32 part) {
  for (const SGE& sge : list)
    if (sge.length != 0 && part-- == 0) return &sge;
  return nullptr;
}

}  // namespace

Requester::Requester(const EngineParts& parts, EngineCounters& counters, RequesterFault& fault,
                     u8 max_ord)
    : qp_(parts.attributes),
      memory_(parts.memory),
      copies_(parts.send_copies),
      counters_(counters),
      fault_(fault),
      queue_(parts.send_limits),
      short_cut_(parts),
      reads_(0),
      max_ord_(max_ord) {}

PostError Requester::post(const SendWR& wr, Time now) {
  const QPState state = qp_.state;
  if (state != QPState::kRTS && state != QPState::kSQD && state != QPState::kError)
    return PostError::kBadState;
  if (!is_offered(wr.op, may_use_rfc7306_ || state == QPState::kError))
    return PostError::kBadOpcode;
  if (returns_data(wr.op) && wr.inline_data) return PostError::kBadOpcode;
  if (is_atomic(wr.op)) {
    u64 room = 0;
    for (const SGE& sge : wr.sg_list) room += sge.length;
    if (room != kAtomicBytes) return PostError::kUnaligned;
  }
  return queue_.push(wr, now);
}

void Requester::on_state(QPState) {
  draining_ = qp_.state == QPState::kSQD;
  if (qp_.state == QPState::kError || qp_.state == QPState::kReset) short_cut_.end();
  if (qp_.state != QPState::kReset) return;
  queue_.clear();
  reads_.clear();
  position_ = {.next = queue_.begin_index()};
  failure_.reset();
  fault_ = {};
  may_use_rfc7306_ = false;
}

void Requester::begin(const StreamAgreement& agreement) {
  ord_ = std::min<u32>(agreement.ord, max_ord_);
  may_use_rfc7306_ = agreement.atomics_and_immediate;
  position_ = {.next = queue_.begin_index()};
  reads_ = Ring<Read>(ord_ + (agreement.to_send == ReadyToReceive::kRead ? 1 : 0));
  short_cut_.begin(agreement.segment_bytes);
  if (agreement.to_send == ReadyToReceive::kSend) ++position_.send_msn;
  if (agreement.to_send != ReadyToReceive::kRead) return;
  ++position_.read_msn;
  ++position_.reads;
  reads_.push({});
}

// --- out

// A request has begun, and not ended.
bool Requester::is_inside(const Position& at) const {
  return at.part != 0 || (short_cut_.is_inside() && at.next == position_.next);
}

bool Requester::may_start(const Position& at) const {
  if (failure_ || at.next == queue_.end_index()) return false;
  return qp_.state == QPState::kRTS || (qp_.state == QPState::kSQD && is_inside(at));
}

// Behind all that was sent before: nothing is between the position and them.
void Requester::execute_local() {
  while (may_start(position_) && is_local_operation(queue_.at(position_.next).wr.op)) {
    const SendWQE& wqe = queue_.at(position_.next);
    if (wqe.wr.fence && position_.reads != 0) return;
    const WQEStatus status = execute_local_operation(wqe, qp_, memory_);
    if (status != WQEStatus::kSuccess) return fail(position_.next, status);
    ++position_.next;
  }
}

// Copies and local operations, in the order of the queue.
void Requester::execute_here(const ShortCut::Progress& progress, Time now) {
  for (;;) {
    execute_local();
    if (!may_start(position_) || position_.part != 0) return;
    ShortCut::Progress here = progress;
    here.is_between &= reads_.empty();
    const u32 done = short_cut_.take(queue_, position_.next, here, counters_, now);
    position_.next += done;
    if (done == 0 || short_cut_.next_timer() != Time::never()) return;
  }
}

bool Requester::next(Position& at, OutMessage& out) const {
  if (!may_start(at)) return false;
  const SendWQE& wqe = queue_.at(at.next);
  if (is_local_operation(wqe.wr.op)) return false;
  if (wqe.wr.fence && at.part == 0 && at.reads != 0) return false;
  if (returns_data(wqe.wr.op) && at.reads >= ord_) return false;
  if (at.part == 0 && short_cut_.holds(wqe, at.next)) return false;
  make_message(at, out);
  step_over(at, out);
  return true;
}

void Requester::step_over(Position& at, const OutMessage& message) {
  if (!is_tagged(message.opcode)) {
    const bool is_send = message.queue == kSendQueueNumber;
    ++(is_send ? at.send_msn : at.read_msn);
    at.reads += is_send ? 0 : 1;
  }
  at.next += message.ends_request ? 1 : 0;
  at.part = message.ends_request ? 0 : at.part + 1;
}

void Requester::make_message(const Position& at, OutMessage& out) const {
  const SendWQE& wqe = queue_.at(at.next);
  out.request = at.next;
  switch (wqe.wr.op) {
    case SendOp::kSend:
    case SendOp::kSendWithInvalidate: return send_message(wqe, at, out);
    case SendOp::kRDMAWrite: return write_message(wqe, out);
    case SendOp::kRDMAWriteWithImmediate:
      return at.part == 0 ? write_message(wqe, out) : immediate_message(wqe, at, out);
    case SendOp::kRDMARead: return read_message(wqe, at, out);
    case SendOp::kCompareSwap:
    case SendOp::kFetchAdd: return atomic_message(wqe, at, out);
    case SendOp::kSendWithImmediate:
    case SendOp::kFlush:
    case SendOp::kAtomicWrite:
    case SendOp::kBindMW:
    case SendOp::kLocalInvalidate: break;
  }
  CHECK_UNREACHABLE();  // post() takes none of them, or they are no messages
}

u32 Requester::max_segment_of_request(const SendWQE& wqe) const {
  return wqe.wr.inline_data ? ~u32{0} : max_segment_of(memory_, qp_.pd, wqe.wr.sg_list);
}

void Requester::send_message(const SendWQE& wqe, const Position& at, OutMessage& out) const {
  out.opcode = send_opcode(wqe.wr);
  out.payload = OutMessage::Payload::kRequest;
  out.length = wqe.length_bytes;
  out.max_segment = max_segment_of_request(wqe);
  out.queue = kSendQueueNumber;
  out.msn = at.send_msn;
  out.invalidate_stag = wqe.wr.op == SendOp::kSendWithInvalidate ? wqe.wr.invalidate.value : 0;
  out.ends_request = true;
}

void Requester::write_message(const SendWQE& wqe, OutMessage& out) const {
  out.opcode = RDMAPOpcode::kWrite;
  out.payload = OutMessage::Payload::kRequest;
  out.length = wqe.length_bytes;
  out.max_segment = max_segment_of_request(wqe);
  out.stag = wqe.wr.r_key.value;
  out.to = wqe.wr.remote_address;
  out.ends_request = wqe.wr.op == SendOp::kRDMAWrite;
}

// RFC 7306, 6.1: eight bytes; ours are the first four.
void Requester::immediate_message(const SendWQE& wqe, const Position& at, OutMessage& out) const {
  out.opcode =
      wqe.wr.solicited ? RDMAPOpcode::kImmediateDataSolicited : RDMAPOpcode::kImmediateData;
  out.payload = OutMessage::Payload::kOwn;
  out.length = kImmediateDataBytes;
  out.queue = kSendQueueNumber;
  out.msn = at.send_msn;
  out.invalidate_stag = 0;
  std::fill_n(out.own.begin(), kImmediateDataBytes, u8{0});
  store_be32(out.own.data(), wqe.wr.immediate);
  out.ends_request = true;
}

// A READ has one sink: a list of several becomes as many READs.
void Requester::read_message(const SendWQE& wqe, const Position& at, OutMessage& out) const {
  u64 before = 0;
  for (u32 i = 0; i < at.part; ++i) before += nonempty_sge(wqe.wr.sg_list, i)->length;
  const SGE* const sink = nonempty_sge(wqe.wr.sg_list, at.part);
  RDMAPReadRequest read{.source_stag = wqe.wr.r_key.value,
                        .source_offset = wqe.wr.remote_address + before};
  if (sink != nullptr) {
    read.sink_stag = sink->l_key.value;
    read.sink_offset = sink->address;
    read.length = sink->length;
  }
  out.opcode = RDMAPOpcode::kReadRequest;
  out.set_own(read);
  out.queue = kReadQueueNumber;
  out.msn = at.read_msn;
  out.invalidate_stag = 0;
  out.ends_request = nonempty_sge(wqe.wr.sg_list, at.part + 1) == nullptr;
}

void Requester::atomic_message(const SendWQE& wqe, const Position& at, OutMessage& out) const {
  const bool swaps = wqe.wr.op == SendOp::kCompareSwap;
  out.opcode = RDMAPOpcode::kAtomicRequest;
  out.set_own(
      RDMAPAtomicRequest{.opcode = swaps ? AtomicOpcode::kCompareSwap : AtomicOpcode::kFetchAdd,
                         .identifier = static_cast<u32>(at.next),
                         .stag = wqe.wr.r_key.value,
                         .offset = wqe.wr.remote_address,
                         .add_or_swap = wqe.wr.swap_or_add,
                         .compare = wqe.wr.compare});
  out.queue = kReadQueueNumber;
  out.msn = at.read_msn;
  out.invalidate_stag = 0;
  out.ends_request = true;
}

// A READ needs only its sink.
MemoryFault Requester::gather(const OutMessage& message, u32 offset, u32 length,
                              PayloadList& out) const {
  const SendWQE& wqe = queue_.at(message.request);
  if (copies_ != nullptr) copies_->read_for(static_cast<u32>(message.request));
  if (message.payload == OutMessage::Payload::kRequest)
    return send_payload(memory_, qp_.pd, wqe, offset, length, out, copies_);
  if (!returns_data(wqe.wr.op)) return MemoryFault::kNone;
  for (const SGE& sge : wqe.wr.sg_list)
    if (const Resolved sink =
            memory_.local(qp_.pd, sge.l_key, sge.address, sge.length, Access::kLocalWrite);
        !sink)
      return sink.fault;
  return MemoryFault::kNone;
}

void Requester::on_sent(const OutMessage& message) {
  CHECK(message.request == position_.next);
  step_over(position_, message);
  if (message.opcode == RDMAPOpcode::kReadRequest) {
    const std::optional<RDMAPReadRequest> read = RDMAPReadRequest::decode(message.own);
    reads_.push({.request = message.request,
                 .ends_request = message.ends_request,
                 .stag = read->sink_stag,
                 .to = read->sink_offset,
                 .length = read->length});
  } else if (message.opcode == RDMAPOpcode::kAtomicRequest) {
    reads_.push({.request = message.request, .ends_request = true, .is_atomic = true});
  }
}

void Requester::on_local_fault(const OutMessage& message) {
  fail(message.request, WQEStatus::kLocalProtection);
}

void Requester::fail(u64 request, WQEStatus status) {
  if (failure_) return;
  failure_ = Failure{request, status};
  ++counters_.req_cqe_error;
  note_fault(request, status);
}

void Requester::note_fault(u64 request, WQEStatus status) {
  if (request == OutMessage::kNoRequest) return;
  const SendWQE& wqe = queue_.at(request);
  fault_ = requester_fault(status, wqe.wr, wqe.length_bytes, wqe.posted);
  if (status == WQEStatus::kLocalProtection)
    fault_.refused =
        find_refused(memory_, qp_.pd, wqe.wr.sg_list,
                     returns_data(wqe.wr.op) ? Access::kLocalWrite : Access::kLocalRead);
}

// --- in

std::optional<TerminateReason> Requester::check_response(const SegmentHeader& segment) {
  const DDPTagged& ddp = segment.to_buffer;
  if (reads_.empty() || reads_.front().is_atomic) return reason::kTaggedInvalidSTag;
  const Read& read = reads_.front();
  if (ddp.stag != read.stag) return reason::kTaggedInvalidSTag;
  const u32 left = read.length - read.received;
  if (ddp.offset != read.to + read.received || segment.payload_bytes > left)
    return reason::kTaggedBounds;
  if (ddp.last != (segment.payload_bytes == left)) return reason::kUnspecifiedOperation;
  return std::nullopt;
}

Resolved Requester::place_of_response(u64 to, u32 length) const {
  return memory_.local(qp_.pd, LKey{reads_.front().stag}, to, length, Access::kLocalWrite);
}

std::optional<TerminateReason> Requester::place_response(u64 to, Bytes payload) {
  if (payload.empty()) return std::nullopt;
  const Resolved place = place_of_response(to, static_cast<u32>(payload.size()));
  if (place && store_payload(memory_, place.data, payload, copies_) == MemoryFault::kNone)
    return std::nullopt;
  fail(reads_.front().request, WQEStatus::kLocalProtection);
  return reason::kLocalCatastrophic;
}

std::optional<TerminateReason> Requester::on_response_segment(const SegmentHeader& segment) {
  Read& read = reads_.front();
  read.received += segment.payload_bytes;
  if (!segment.last()) return std::nullopt;
  reads_.pop();
  --position_.reads;
  return std::nullopt;
}

std::optional<TerminateReason> Requester::on_atomic_response(Bytes payload) {
  const std::optional<RDMAPAtomicResponse> response = RDMAPAtomicResponse::decode(payload);
  if (!response || payload.size() != RDMAPAtomicResponse::kSize)
    return reason::kUnspecifiedOperation;
  if (reads_.empty() || !reads_.front().is_atomic ||
      response->identifier != static_cast<u32>(reads_.front().request))
    return reason::kUnexpectedOpcode;
  const u64 request = reads_.front().request;
  const u64 original = response->original;
  std::array<u8, kAtomicBytes> bytes;
  std::memcpy(bytes.data(), &original, sizeof original);
  if (scatter(memory_, qp_.pd, queue_.at(request).wr.sg_list, 0, bytes, copies_) !=
      MemoryFault::kNone) {
    fail(request, WQEStatus::kLocalProtection);
    return reason::kLocalCatastrophic;
  }
  reads_.pop();
  --position_.reads;
  return std::nullopt;
}

void Requester::on_copy_failed() {
  if (!reads_.empty()) fail(reads_.front().request, WQEStatus::kLocalProtection);
}

void Requester::on_refused_read() {
  if (reads_.empty() || reads_.front().request == OutMessage::kNoRequest) return;
  ++counters_.req_remote_access_errors;
  fail(reads_.front().request, WQEStatus::kRemoteAccess);
}

// --- completions

// The READ that says we are ready is no request, and before all others.
u64 Requester::oldest_read() const {
  if (reads_.empty()) return OutMessage::kNoRequest;
  const bool is_ready = reads_.front().request == OutMessage::kNoRequest;
  return is_ready && reads_.size() > 1 ? reads_[1].request : reads_.front().request;
}

// Returns nullopt if the oldest request is not complete.
std::optional<WQEStatus> Requester::status_of_oldest() const {
  const u64 oldest = queue_.begin_index();
  if (failure_ && failure_->request == oldest) return failure_->status;
  const bool is_sent = oldest < position_.next;
  const bool waits = oldest_read() == oldest;
  if (is_sent && !waits) return WQEStatus::kSuccess;
  if (qp_.state == QPState::kError) return WQEStatus::kFlushed;
  return std::nullopt;
}

bool Requester::poll_cqe(CQE& out) {
  while (!queue_.empty()) {
    const std::optional<WQEStatus> status = status_of_oldest();
    if (!status) return false;
    const SendWQE& wqe = queue_.front();
    count_completion(wqe, qp_, *status);
    const bool visible = completes_visibly(wqe, qp_, *status);
    if (visible) out = send_cqe(wqe, qp_, *status);
    while (!reads_.empty() && reads_.front().request == queue_.begin_index()) reads_.pop();
    queue_.pop_front();
    position_.next = std::max(position_.next, queue_.begin_index());
    if (!visible) continue;
    out.entries = queue_.take_unreported();
    return true;
  }
  return false;
}

bool Requester::is_draining() const {
  return draining_ && (is_inside(position_) || queue_.begin_index() != position_.next);
}

bool Requester::take_drained() {
  if (!draining_ || is_draining()) return false;
  draining_ = false;
  return true;
}

}  // namespace verbena::iwarp
