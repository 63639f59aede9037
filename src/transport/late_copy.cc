#include "transport/late_copy.h"

#include "base/check.h"

namespace verbena {
namespace {

constexpr u32 kMaxRefusals = 6;  // that lengthen the pause: to 64 requests

// Begins a job for each part that is one piece here and in one range there.
void begin_jobs(const PeerCopy& copy, std::span<const PeerPlace> places,
                const ProtectionTable& memory, CopyLane& lane) {
  const CopyOp op = copy.op == SendOp::kRDMAWrite ? CopyOp::kToPeer : CopyOp::kFromPeer;
  const MemoryPiece* piece = copy.pieces.data();
  u64 done_of_piece = 0;
  for (u32 i = 0; i < copy.range_count; ++i) {
    PeerPlace place = places[i];
    for (u64 left = copy.ranges[i].length_bytes; left != 0;) {
      const u64 length = std::min(left, piece->length_bytes - done_of_piece);
      CHECK(memory.copies().copy_peer(memory.far(), &lane, op, piece->data + done_of_piece,
                                      static_cast<u32>(length), place) == CopyResult::kDone);
      place.offset += length;
      done_of_piece += length;
      left -= length;
      if (done_of_piece != piece->length_bytes) continue;
      ++piece;
      done_of_piece = 0;
    }
  }
}

}  // namespace

bool LateCopy::is_for(const ProtectionTable& memory, PDId pd, const SendWQE& wqe) {
  if (!memory.copies().has_staging() || wqe.inline_bytes != nullptr) return false;
  for (const SGE& sge : wqe.wr.sg_list) {
    if (sge.length == 0) continue;
    const Resolved first = memory.local(pd, sge.l_key, sge.address, 1, Access::kLocalRead);
    return first && is_at(memory, first.data, Where::kLate);
  }
  return false;
}

bool LateCopy::begin(const PeerCopy& copy, u64 first, PeerMemory& peer, const QPAttributes& qp,
                     const ProtectionTable& memory, CopyLane& lane) {
  std::array<PeerPlace, PeerMemory::kMaxRanges> places;
  const Access need = copy.op == SendOp::kRDMAWrite ? Access::kRemoteWrite : Access::kRemoteRead;
  const bool has_room =
      !lane.failure() && memory.copies().has_room(&lane, copy.piece_count + copy.range_count);
  const Admission admission =
      has_room ? peer.admit(qp, need, std::span(copy.ranges.data(), copy.range_count), places)
               : Admission::kRefused;
  switch (admission) {
    case Admission::kAdmitted: break;
    case Admission::kRefused: pause_from(first); return false;
    case Admission::kOtherMemory: not_before_ = first + 1; return false;
  }
  counts_ = copy;
  before_ = lane.begun();
  begin_jobs(copy, places, memory, lane);
  last_ = lane.begun();
  has_begun_ = true;
  return true;
}

LateCopy::Result LateCopy::look(const CopyLane& lane) {
  if (!lane.has_ended(last_)) return Result::kRunning;
  has_begun_ = false;
  if (lane.has_refused_since(before_)) return Result::kRefused;
  refusals_ = 0;
  return Result::kDone;
}

void LateCopy::pause_from(u64 request) {
  not_before_ = request + (u64{1} << std::min(refusals_++, kMaxRefusals));
}

LocalWork LateCopy::work() const {
  if (counts_.op == SendOp::kRDMAWrite)
    return {
        .writes = counts_.finished, .write_packets = counts_.packets, .write_bytes = counts_.bytes};
  return {.reads = counts_.finished, .read_packets = counts_.packets, .read_bytes = counts_.bytes};
}

}  // namespace verbena
