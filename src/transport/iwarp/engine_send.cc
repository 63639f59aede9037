// IWARPEngine: the sending side. RFC 5044, 4 (FPDUs); RFC 5041, 5 (segments of a message).
#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "transport/iwarp/engine.h"

namespace verbena::iwarp {
namespace {

constexpr std::array<u8, 3> kPad{};

u32 pad_of(u32 ulpdu) { return (4 - (kMPALengthBytes + ulpdu) % 4) % 4; }
u32 header_bytes_of(const OutMessage& message) {
  return is_tagged(message.opcode) ? kTaggedHeader : kUntaggedHeader;
}

}  // namespace

// Where the next byte is, with the rest of the FPDU that has gone in part.
IWARPEngine::Cursor IWARPEngine::here() const {
  Cursor at = cursor_;
  at.requests = requester_.position();
  at.responses = 0;
  if (at.source == Source::kRequest) Requester::step_over(at.requests, at.message);
  if (at.source == Source::kResponse) at.responses = 1;
  return at;
}

// The message that follows, if the cursor is between two; TERMINATE is the last.
bool IWARPEngine::start_message(Cursor& at) const {
  if (at.terminate_is_before) return false;
  at.offset = 0;
  at.message.max_segment = ~u32{0};
  if (to_send_) {
    at.source = Source::kTerminate;
    make_terminate_message(at.message);
    return true;
  }
  if (qp_.state == QPState::kError) return false;
  if (!at.ready_is_before) {
    at.source = Source::kReady;
    make_ready_message(at.message);
    return true;
  }
  if (!has_heard_) return false;
  return at.response_next ? start_response(at) || start_request(at)
                          : start_request(at) || start_response(at);
}

bool IWARPEngine::start_request(Cursor& at) const {
  if (!requester_.next(at.requests, at.message)) return false;
  at.source = Source::kRequest;
  at.response_next = true;
  return true;
}

bool IWARPEngine::start_response(Cursor& at) const {
  if (!responder_.response(at.responses, at.message)) return false;
  at.source = Source::kResponse;
  at.response_next = false;
  ++at.responses;
  return true;
}

// RFC 6581, 9: a message of no bytes.
void IWARPEngine::make_ready_message(OutMessage& out) const {
  out.request = OutMessage::kNoRequest;
  out.payload = OutMessage::Payload::kOwn;
  out.stag = 0;
  out.to = 0;
  out.invalidate_stag = 0;
  out.msn = 1;
  out.length = 0;
  switch (agreement_.to_send) {
    case ReadyToReceive::kWrite: out.opcode = RDMAPOpcode::kWrite; return;
    case ReadyToReceive::kSend:
      out.opcode = RDMAPOpcode::kSend;
      out.queue = kSendQueueNumber;
      return;
    case ReadyToReceive::kRead:
      out.opcode = RDMAPOpcode::kReadRequest;
      out.queue = kReadQueueNumber;
      out.set_own(RDMAPReadRequest{});
      return;
    case ReadyToReceive::kNone: break;
  }
  CHECK_UNREACHABLE();
}

void IWARPEngine::make_terminate_message(OutMessage& out) const {
  out.request = OutMessage::kNoRequest;
  out.opcode = RDMAPOpcode::kTerminate;
  out.payload = OutMessage::Payload::kOwn;
  out.length = terminate_bytes_;
  std::ranges::copy(terminate_payload_, out.own.begin());
  out.queue = kTerminateQueueNumber;
  out.msn = 1;
  out.invalidate_stag = 0;
}

u32 IWARPEngine::payload_here(const Cursor& at) const {
  const u32 longest = std::min(max_ulpdu_ - header_bytes_of(at.message), at.message.max_segment);
  return std::min(at.message.length - at.offset, longest);
}

MemoryFault IWARPEngine::gather_payload(const Cursor& at, u32 length, PayloadList& out) const {
  switch (at.message.payload) {
    case OutMessage::Payload::kRequest:
      return requester_.gather(at.message, at.offset, length, out);
    case OutMessage::Payload::kResponse:
      return responder_.gather(at.message, at.offset, length, out);
    case OutMessage::Payload::kOwn:
      out.add(Bytes(at.message.own).subspan(at.offset, length));
      return at.source == Source::kRequest ? requester_.gather(at.message, 0, 0, out)
                                           : MemoryFault::kNone;
  }
  CHECK_UNREACHABLE();
}

void IWARPEngine::write_header(const Cursor& at, u32 length, FPDU& out) const {
  const OutMessage& message = at.message;
  const u32 ddp = header_bytes_of(message);
  const bool last = at.offset + length == message.length;
  const u8 control = control_of(message.opcode);
  const std::span<u8> to(out.header);
  store_be16(to.data(), static_cast<u16>(ddp + length));
  out.header_bytes = kMPALengthBytes + ddp;
  if (is_tagged(message.opcode))
    DDPTagged{
        .last = last, .control = control, .stag = message.stag, .offset = message.to + at.offset}
        .encode(to.subspan<kMPALengthBytes, kTaggedHeader>());
  else
    DDPUntagged{.last = last,
                .control = control,
                .invalidate_stag = message.invalidate_stag,
                .queue = message.queue,
                .message = message.msn,
                .offset = at.offset}
        .encode(to.subspan<kMPALengthBytes, kUntaggedHeader>());
}

std::array<u8, 4> IWARPEngine::trailer_of(const CRC32C& crc) const {
  return agreement_.crc ? crc.bytes() : std::array<u8, 4>{};
}

// All but the CRC, which needs payload that nobody changes.
MemoryFault IWARPEngine::build(const Cursor& at, u32 length, FPDU& out) const {
  if (const MemoryFault fault = gather_payload(at, length, out.payload);
      fault != MemoryFault::kNone)
    return fault;
  write_header(at, length, out);
  out.pad = pad_of(out.header_bytes - kMPALengthBytes + length);
  return MemoryFault::kNone;
}

// Returns the bytes of the FPDU at the cursor, which has `length` bytes of payload.
u32 IWARPEngine::bytes_here(const Cursor& at, u32 length) const {
  const u32 plain = fpdu_bytes(header_bytes_of(at.message) + length);
  return agreement_.sends_markers ? marked_bytes(plain, at.position) : plain;
}

void IWARPEngine::step_over(Cursor& at, u32 length, u32 bytes) const {
  at.position += bytes;
  at.offset += length;
  if (at.offset != at.message.length) return;
  if (at.source == Source::kReady) at.ready_is_before = true;
  if (at.source == Source::kTerminate) at.terminate_is_before = true;
  at.source = Source::kNone;
}

// Adds the FPDU at the cursor, without its first `skip` bytes, and steps over it. Returns false if
// there is none.
bool IWARPEngine::gather_one(Cursor& at, u32& skip, StreamGather& out) {
  const bool breaks_off = to_send_ && at.source != Source::kTerminate && skip == 0;
  if ((at.source == Source::kNone || breaks_off) && !start_message(at)) return false;
  const u32 length = payload_here(at), bytes = bytes_here(at, length);
  if (!out.has_room_for(bytes + 64)) return false;
  if (skip != 0 && !far_part_.empty())
    out.add_copy(far_part_);
  else if (!add_fpdu(at, length, skip, out))
    return false;
  skip = 0;
  step_over(at, length, bytes);
  return true;
}

// Returns false if the payload is not there.
bool IWARPEngine::add_fpdu(const Cursor& at, u32 length, u32 skip, StreamGather& out) {
  FPDU fpdu;
  if (const MemoryFault fault = build(at, length, fpdu); fault != MemoryFault::kNone) {
    if (out.empty() && fault != MemoryFault::kLater) on_unsendable(at, fault);
    return false;
  }
  agreement_.sends_markers ? add_marked(at, fpdu, out) : add_plain(at, fpdu, skip, out);
  return true;
}

// If there is a CRC, payload is copied, so that the CRC fits the bytes that are sent: the program
// may write to its memory meanwhile, as QEMU's guests do while they migrate. Bytes in the cursor
// itself are copied because the cursor moves.
void IWARPEngine::add_plain(const Cursor& at, const FPDU& fpdu, u32 skip, StreamGather& out) const {
  const bool copies = agreement_.crc || at.message.payload == OutMessage::Payload::kOwn;
  const u32 before = out.bytes();
  std::size_t left = skip;
  const auto add = [&](Bytes bytes, bool copy) {
    const Bytes rest = bytes.subspan(std::min(left, bytes.size()));
    left -= bytes.size() - rest.size();
    copy ? out.add_copy(rest) : out.add(rest);
  };
  add(Bytes(fpdu.header).first(fpdu.header_bytes), true);
  for (const Bytes part : fpdu.payload.list()) add(part, copies);
  add(Bytes(kPad).first(fpdu.pad), true);
  CRC32C crc = skip != 0 ? part_crc_ : CRC32C();
  if (agreement_.crc) crc.add(out.last_copied(out.bytes() - before));
  add(trailer_of(crc), true);
}

// Behind all that was sent before: nothing is between the position and the requests.
void IWARPEngine::execute_here(Time now) {
  if (cursor_.source != Source::kNone || !has_heard_ || !cursor_.ready_is_before || to_send_)
    return;
  requester_.execute_here(
      {.sent = sent_messages_, .received = received_messages_, .is_between = part_sent_ == 0}, now);
}

// Returns true if gather() adds nothing before the next input, and the stream does not end.
bool IWARPEngine::is_quiet() const {
  return cursor_.source == Source::kNone && cursor_.ready_is_before && requester_.is_empty() &&
         !requester_.has_failed() && !responder_.has_responses() && !to_send_ && !wants_end() &&
         rest_sent_ >= rest_.size();
}

void IWARPEngine::gather(StreamGather& out, Time now) {
  if (!is_open_ || is_broken_) return;
  if (rest_sent_ < rest_.size()) return out.add(Bytes(rest_).subspan(rest_sent_));
  if (sent_) return;
  execute_here(now);
  if (requester_.has_failed() && !received_) terminate(reason::kLocalCatastrophic);
  const bool terminates = to_send_.has_value();
  gather_from_here(out);
  if (to_send_ && !terminates) gather_from_here(out);
}

// Copied, since markers split it.
void IWARPEngine::add_marked(const Cursor& at, const FPDU& fpdu, StreamGather& out) {
  plain_.assign(fpdu.header.begin(), fpdu.header.begin() + fpdu.header_bytes);
  for (const Bytes part : fpdu.payload.list())
    plain_.insert(plain_.end(), part.begin(), part.end());
  plain_.resize(plain_.size() + fpdu.pad);
  marked_.clear();
  append_marked(plain_, agreement_.crc ? CRCUse::kUsed : CRCUse::kNotUsed, at.position, marked_);
  out.add_copy(marked_);
}

void IWARPEngine::gather_from_here(StreamGather& out) {
  if (is_broken_) return;
  Cursor at = here();
  u32 skip = part_sent_;
  while (gather_one(at, skip, out)) {
  }
}

// The message at the cursor cannot be sent: its memory is not what it was.
void IWARPEngine::on_unsendable(const Cursor& at, MemoryFault fault) {
  if (part_sent_ != 0) is_broken_ = true;
  if (at.source == Source::kRequest) requester_.on_local_fault(at.message);
  terminate(at.source == Source::kResponse ? responder_.on_unreadable(at.message, fault)
                                           : reason::kLocalCatastrophic);
}

void IWARPEngine::on_sent(const StreamGather& gathered, u32 bytes, Time) {
  if (rest_sent_ < rest_.size()) {
    rest_sent_ += bytes;
    return;
  }
  u32 at = 0;
  while (at != bytes) {
    begin_message();
    const u32 length = payload_here(cursor_), size = bytes_here(cursor_, length);
    const u32 now = std::min(bytes - at, size - part_sent_);
    if (!agreement_.sends_markers)
      note_part(gathered, at, at + now, size);
    else if (now != size)
      keep_marked_rest(gathered, at + now, at + size);
    at += now;
    if (!agreement_.sends_markers && part_sent_ != size)
      return keep_far_part(gathered, at, size - part_sent_);
    part_sent_ = 0;
    far_part_.clear();
    ++counts_.sent_segments;
    if (ends_message(cursor_)) finish_message(cursor_);
    step_over(cursor_, length, size);
  }
}

// Starts the message that gather() has added at the cursor, if the cursor is between two.
void IWARPEngine::begin_message() {
  const bool breaks_off = to_send_ && cursor_.source != Source::kTerminate && part_sent_ == 0;
  if (cursor_.source != Source::kNone && !breaks_off) return;
  cursor_.requests = requester_.position();
  cursor_.responses = 0;
  const bool starts = start_message(cursor_);
  CHECK(starts);
}

// It cannot be made again by part: its bytes are kept, and it counts as sent.
void IWARPEngine::keep_marked_rest(const StreamGather& gathered, u32 from, u32 to) {
  rest_.clear();
  rest_sent_ = 0;
  gathered.visit_range(from, to,
                       [this](Bytes part) { rest_.insert(rest_.end(), part.begin(), part.end()); });
}

// Updates the CRC of the sent part of the FPDU: its last bytes are the CRC itself.
void IWARPEngine::note_part(const StreamGather& gathered, u32 from, u32 to, u32 size) {
  if (part_sent_ == 0) part_crc_ = CRC32C();
  const u32 begin = part_sent_;
  part_sent_ += to - from;
  const bool is_whole = part_sent_ == size;
  if (is_whole || !agreement_.crc) return;
  const u32 covered_end = std::min(part_sent_, size - 4);
  if (covered_end <= begin) return;
  gathered.visit_range(from, from + (covered_end - begin), [this](Bytes b) { part_crc_.add(b); });
}

// The memory may have changed by the time that the rest is sent, and its bytes take a copy.
void IWARPEngine::keep_far_part(const StreamGather& gathered, u32 from, u32 bytes) {
  if (cursor_.message.max_segment != kCopySlotBytes) return;
  far_part_.clear();
  gathered.visit_range(from, from + bytes, [this](Bytes part) {
    far_part_.insert(far_part_.end(), part.begin(), part.end());
  });
}

void IWARPEngine::finish_message(const Cursor& at) {
  ++sent_messages_;
  switch (at.source) {
    case Source::kRequest: requester_.on_sent(at.message); return;
    case Source::kResponse: responder_.on_response_sent(); return;
    case Source::kReady: return;
    case Source::kTerminate: sent_ = to_send_; return;
    case Source::kNone: break;
  }
  CHECK_UNREACHABLE();
}

// The messages are about to be forgotten: of an FPDU that is sent in part the rest is kept.
void IWARPEngine::keep_rest() {
  FPDU fpdu;
  if (cursor_.source == Source::kTerminate) return;
  if (part_sent_ == 0) {
    cursor_.source = Source::kNone;
    return;
  }
  rest_sent_ = 0;
  if (!far_part_.empty()) {
    rest_ = std::exchange(far_part_, {});
    part_sent_ = 0;
    cursor_.source = Source::kNone;
    return;
  }
  if (build(cursor_, payload_here(cursor_), fpdu) != MemoryFault::kNone) {
    is_broken_ = true;
    return;
  }
  std::vector<u8> all(fpdu.header.begin(), fpdu.header.begin() + fpdu.header_bytes);
  for (const Bytes part : fpdu.payload.list()) all.insert(all.end(), part.begin(), part.end());
  all.insert(all.end(), fpdu.pad, u8{0});
  CRC32C crc = part_crc_;
  if (part_sent_ < all.size()) crc.add(Bytes(all).subspan(part_sent_));
  const std::array<u8, 4> trailer = trailer_of(crc);
  all.insert(all.end(), trailer.begin(), trailer.end());
  rest_.assign(all.begin() + part_sent_, all.end());
  part_sent_ = 0;
  cursor_.source = Source::kNone;
}

}  // namespace verbena::iwarp
