#include "fabric/tcp/iwarp_end.h"

#include <algorithm>
#include <array>
#include <functional>

#include "base/check.h"

namespace verbena::fabric {
namespace {

constexpr PDId kIWARPPD{1};
constexpr std::array<u8, IWARPMemory::kMostPayload> kNoPayload{};  // which is never looked at
constexpr u32 kShortestSegment = 128;

QPAttributes attributes_in_init() {
  QPAttributes qp;
  qp.state = QPState::kInit;
  qp.pd = kIWARPPD;
  qp.remote_access = Access::kRemoteWrite;
  return qp;
}

// Returns the payload of the longest WRITE: whole FPDUs, so that several WRITEs of a long flow take
// as many bytes as one WRITE.
u32 longest_write(u32 segment) {
  const u32 payload = iwarp::longest_ulpdu(segment) - iwarp::kTaggedHeader;
  return IWARPMemory::kMostPayload / payload * payload;
}

}  // namespace

IWARPMemory::IWARPMemory()
    : source_(*table_.register_mr(kIWARPPD, const_cast<u8*>(kNoPayload.data()), kNoPayload.size(),
                                  0, AccessFlags{})),
      sink_(*table_.register_null(kIWARPPD, Access::kLocalWrite | Access::kRemoteWrite)) {}

bool IWARPMemory::is_payload(Bytes piece) {
  const std::less<const u8*> before;
  return !before(piece.data(), kNoPayload.data()) &&
         before(piece.data(), kNoPayload.data() + kNoPayload.size());
}

IWARPEnd::IWARPEnd(IWARPMemory& memory, u32 mss)
    : memory_(memory),
      segment_(std::max(mss, kShortestSegment)),
      qp_(attributes_in_init()),
      receives_({.depth = 1, .max_sge = 1}),
      engine_({.attributes = qp_,
               .memory = memory.table(),
               .receive_queue = receives_,
               .send_limits = {.depth = 1, .max_sge = 1}},
              {}) {
  engine_.begin({.crc = false, .atomics_and_immediate = true, .segment_bytes = segment_}, Time());
  qp_.state = QPState::kRTS;
  engine_.on_state(QPState::kInit, Time());
  post_receive();
}

// --- out

u64 IWARPEnd::post(u64 bytes, std::optional<u32> word) {
  to_send_.push_back({bytes, word});
  return bytes_of_flow(bytes) + (word ? iwarp::kImmediateBytes : 0);
}

void IWARPEnd::post_write(Time now) {
  CHECK(!to_send_.empty());
  Message& message = to_send_.front();
  const u64 length = std::min<u64>(message.bytes, longest_write(segment_));
  const SGE from{0, static_cast<u32>(length), memory_.source().l_key};
  message.bytes -= length;
  SendWR wr;
  wr.op = SendOp::kRDMAWrite;
  wr.signaled = true;
  wr.sg_list = {&from, length != 0 ? 1u : 0u};
  wr.r_key = peer_key_;
  if (message.bytes == 0 && message.word) {
    wr.op = SendOp::kRDMAWriteWithImmediate;
    wr.immediate = *message.word;
  }
  if (message.bytes == 0) to_send_.pop_front();
  CHECK(engine_.post_send(wr, now) == PostError::kOk);
}

void IWARPEnd::make_until(u64 position, StreamGather& room, Time now) {
  while (made_ < position) {
    room.clear();
    engine_.gather(room, now);
    if (room.empty()) {
      post_write(now);
      continue;
    }
    for (const Bytes piece : room.pieces())
      IWARPMemory::is_payload(piece) ? pipe_->put_payload(static_cast<u32>(piece.size()))
                                     : pipe_->put(piece);
    made_ += room.bytes();
    engine_.on_sent(room, room.bytes(), now);
    take_completions();
  }
}

// --- in

void IWARPEnd::post_receive() { CHECK(receives_.push({}) == PostError::kOk); }

void IWARPEnd::on_delivered(u64 position, Time now) {
  while (delivered_ < position) {
    const u64 left = std::min<u64>(position - delivered_, kNoPayload.size());
    const FPDUPipe::Piece piece = pipe_->take(left);
    const Bytes bytes = piece.payload != 0 ? Bytes(kNoPayload).first(piece.payload) : piece.bytes;
    delivered_ += bytes.size();
    take(bytes, now);
  }
}

void IWARPEnd::take(Bytes bytes, Time now) {
  while (!bytes.empty()) {
    bytes = engine_.on_bytes(bytes, now);
    take_completions();
  }
}

// Both ends are ours, and TCP's bytes are right: nothing can fail.
void IWARPEnd::take_completions() {
  for (CQE cqe; engine_.poll_send_cqe(cqe); engine_.free_sends(cqe.entries))
    CHECK(cqe.status == WQEStatus::kSuccess);
  for (CQE cqe; engine_.poll_receive_cqe(cqe); post_receive()) {
    CHECK(cqe.status == WQEStatus::kSuccess && cqe.with_immediate);
    receives_.free_entries(cqe.entries);
    arrived_.push_back(cqe.immediate);
  }
  CHECK(!engine_.poll_event());
}

std::optional<u32> IWARPEnd::poll_message() {
  if (arrived_.empty()) return std::nullopt;
  const u32 word = arrived_.front();
  arrived_.pop_front();
  return word;
}

}  // namespace verbena::fabric
