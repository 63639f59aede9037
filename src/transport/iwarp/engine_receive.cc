// IWARPEngine: the receiving side. RFC 5040, 5 to 7; RFC 5041, 7 and 8; RFC 5044, 5.
#include <algorithm>

#include "base/check.h"
#include "transport/iwarp/engine.h"
#include "transport/iwarp/far_payload.h"

namespace verbena::iwarp {
namespace {

bool is_for_requester(RDMAPOpcode opcode) {
  return opcode == RDMAPOpcode::kReadResponse || opcode == RDMAPOpcode::kAtomicResponse;
}

}  // namespace

bool IWARPEngine::receives() const {
  return is_open_ && !peer_ended_ && !to_send_ && !sent_ && !received_ && !is_broken_ &&
         qp_.state != QPState::kError;
}

// A READ's response and an atomic's result are copied by the lane of what we send.
bool IWARPEngine::has_room() const {
  CopyQueue& copies = memory_.copies();
  return !copies.has_staging() || (copies.has_room(send_copies_, kMaxSegmentCopies) &&
                                   copies.has_room(receive_copies_, kMaxSegmentCopies));
}

Bytes IWARPEngine::on_bytes(Bytes bytes, Time) {
  while (!bytes.empty() && receives())
    if (!has_room() || on_step(reader_.read(bytes))) return bytes;
  return {};
}

void IWARPEngine::on_send_copy_failed() {
  if (!receives()) return;
  requester_.on_copy_failed();
  terminate(reason::kLocalCatastrophic);
}

void IWARPEngine::on_receive_copy_failed(const CopyMark& mark) {
  if (receives()) terminate(responder_.on_copy_failed(mark));
}

// Returns true if there may be an output.
bool IWARPEngine::on_step(SegmentReader::Step step) {
  using Step = SegmentReader::Step;
  std::optional<TerminateReason> fault;
  switch (step) {
    case Step::kMore: return false;
    case Step::kBadMarker:
    case Step::kBadLength: terminate(reason::kBadLength); return true;
    case Step::kBadCRC: terminate(reason::kBadCRC); return true;
    case Step::kBadVersion:
      terminate_for_segment(reader_.header().tagged ? reason::kTaggedVersion
                                                    : reason::kUntaggedVersion);
      return true;
    case Step::kSegment:
      fault = check_segment();
      if (!fault) fault = place_part();
      if (!fault) fault = finish_segment();
      break;
    case Step::kBegin: fault = check_segment(); break;
    case Step::kPart: fault = place_part(); break;
    case Step::kEnd:
      fault = place_part();
      if (!fault) fault = finish_segment();
      break;
  }
  if (fault) terminate_for_segment(*fault);
  const bool is_whole = step == Step::kSegment || step == Step::kEnd;
  if (is_whole && !fault && reader_.header().last()) note_executed();
  if (is_whole) ++counts_.received_segments;
  return fault || (is_whole && reader_.header().last() && opcode_ != RDMAPOpcode::kWrite);
}

// The message's bytes are in place, except for copies to far memory that have not ended, and the
// requested work is done or queued.
void IWARPEngine::note_executed() {
  ++received_messages_;
  note_progress();
}

// While a copy runs, peers on this host are told nothing, and send the following messages by the
// stream.
void IWARPEngine::note_progress() {
  const auto has_ended = [](const CopyLane* lane) {
    return lane == nullptr || lane->has_ended(lane->begun());
  };
  if (progress_ != nullptr && has_ended(send_copies_) && has_ended(receive_copies_))
    progress_->note(qp_.qpn, PSN(received_messages_));
}

std::optional<TerminateReason> IWARPEngine::check_segment() {
  const SegmentHeader& segment = reader_.header();
  has_heard_ = true;
  if (segment.control() >> 6 != kRDMAPVersion) return reason::kRDMAPVersion;
  const std::optional<RDMAPOpcode> opcode = opcode_of(segment.control());
  if (!opcode || is_tagged(*opcode) != segment.tagged) return reason::kUnexpectedOpcode;
  opcode_ = *opcode;
  if (is_for_requester(opcode_)) return check_to_requester();
  if (opcode_ != RDMAPOpcode::kTerminate) return responder_.check(segment, opcode_);
  if (segment.to_queue.queue != kTerminateQueueNumber) return reason::kInvalidQueue;
  if (segment.to_queue.message != 1) return reason::kInvalidMSN;
  return segment.to_queue.offset == 0 ? std::nullopt : std::optional(reason::kInvalidMO);
}

std::optional<TerminateReason> IWARPEngine::check_to_requester() {
  const SegmentHeader& segment = reader_.header();
  if (opcode_ == RDMAPOpcode::kReadResponse) return requester_.check_response(segment);
  if (segment.to_queue.queue != kAtomicResponseQueueNumber) return reason::kInvalidQueue;
  return segment.last() ? std::nullopt : std::optional(reason::kUnspecifiedOperation);
}

std::optional<TerminateReason> IWARPEngine::place_part() {
  const SegmentHeader& segment = reader_.header();
  switch (opcode_) {
    case RDMAPOpcode::kReadResponse:
      return requester_.place_response(segment.to_buffer.offset + reader_.offset(),
                                       reader_.payload());
    case RDMAPOpcode::kAtomicResponse: return requester_.on_atomic_response(reader_.payload());
    case RDMAPOpcode::kTerminate: on_terminate(reader_.payload()); return std::nullopt;
    case RDMAPOpcode::kWrite:
    case RDMAPOpcode::kReadRequest:
    case RDMAPOpcode::kSend:
    case RDMAPOpcode::kSendInvalidate:
    case RDMAPOpcode::kSendSolicited:
    case RDMAPOpcode::kSendSolicitedInvalidate:
    case RDMAPOpcode::kImmediateData:
    case RDMAPOpcode::kImmediateDataSolicited:
    case RDMAPOpcode::kAtomicRequest:
      return responder_.place(segment, opcode_, reader_.offset(), reader_.payload());
  }
  CHECK_UNREACHABLE();
}

std::optional<TerminateReason> IWARPEngine::finish_segment() {
  const SegmentHeader& segment = reader_.header();
  if (opcode_ == RDMAPOpcode::kReadResponse) return requester_.on_response_segment(segment);
  if (opcode_ == RDMAPOpcode::kAtomicResponse || opcode_ == RDMAPOpcode::kTerminate)
    return std::nullopt;
  return responder_.finish(segment, opcode_);
}

MutableBytes IWARPEngine::direct_place() {
  const u32 bytes = reader_.placeable();
  if (bytes == 0 || !receives()) return {};
  const SegmentHeader& segment = reader_.header();
  Resolved place;
  if (opcode_ == RDMAPOpcode::kWrite)
    place = responder_.place_of_write(segment, reader_.next_offset(), bytes);
  else if (opcode_ == RDMAPOpcode::kReadResponse)
    place = requester_.place_of_response(segment.to_buffer.offset + reader_.next_offset(), bytes);
  if (!place || !is_here(place.data)) return {};
  return {place.data, bytes};
}

void IWARPEngine::on_placed(u32 bytes, Time) {
  const MutableBytes place = direct_place();
  CHECK(bytes <= place.size());
  reader_.on_placed(place.first(bytes));
}

// A TERMINATE can name only a READ or atomic among our requests: the others were complete when
// sent.
void IWARPEngine::on_terminate(Bytes payload) {
  const std::optional<RDMAPTerminate> message = RDMAPTerminate::decode(payload);
  received_ = message ? TerminateReason{message->layer, message->type, message->code}
                      : reason::kLocalCatastrophic;
  fault_.stream = {StreamFault::What::kTerminatedByPeer, received_->layer, received_->type,
                   received_->code};
  constexpr u8 kRemoteProtection = 1;
  if (received_->layer == layer::kRDMAP && received_->type == kRemoteProtection)
    requester_.on_refused_read();
  fatal_event_ = true;
}

void IWARPEngine::terminate(TerminateReason reason) {
  if (to_send_) return;
  to_send_ = reason;
  fault_.stream = {StreamFault::What::kTerminatedByUs, reason.layer, reason.type, reason.code};
  const RDMAPTerminate message{.layer = reason.layer, .type = reason.type, .code = reason.code};
  message.encode(std::span(terminate_payload_).first<RDMAPTerminate::kSize>());
  terminate_bytes_ = RDMAPTerminate::kSize;
  fatal_event_ = true;
}

// With the segment's length and its DDP header. RFC 5040, 4.8
void IWARPEngine::terminate_for_segment(TerminateReason reason) {
  if (to_send_) return;
  terminate(reason);
  const SegmentHeader& segment = reader_.header();
  const RDMAPTerminate message{.layer = reason.layer,
                               .type = reason.type,
                               .code = reason.code,
                               .has_length = true,
                               .has_ddp_header = true};
  const std::span<u8> to(terminate_payload_);
  message.encode(to.first<RDMAPTerminate::kSize>());
  to[4] = static_cast<u8>(segment.ulpdu_bytes >> 8);
  to[5] = static_cast<u8>(segment.ulpdu_bytes);
  std::copy_n(segment.bytes.begin(), segment.header_bytes(), to.begin() + 6);
  terminate_bytes_ = 6 + segment.header_bytes();
}

}  // namespace verbena::iwarp
