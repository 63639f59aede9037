#include "transport/peer_copy.h"

#include "memory/sg_walk.h"

namespace verbena {
namespace {

// Finds the pieces of [offset, offset + length) of a list. Returns 0 if not all of it may be used,
// or is where it should be.
u32 pieces_of(const PeerCopy::Side& side, std::span<const SGE> list, u64 offset, u64 length,
              Access need, std::span<MemoryPiece> out) {
  const bool is_simple = list.size() == 1 && list[0].address + offset >= list[0].address;
  if (is_simple && list[0].length == offset + length) {  // the most frequent case
    const Resolved piece =
        side.memory.local(side.pd, list[0].l_key, list[0].address + offset, length, need);
    out[0] = {piece.data, length};
    return piece && is_at(side.memory, piece.data, side.where) ? 1 : 0;
  }
  u32 count = 0;
  const MemoryFault fault =
      locate(side.memory, side.pd, list, offset, length, need, side.where, out, count);
  return fault == MemoryFault::kNone ? count : 0;
}

}  // namespace

bool PeerCopy::add(const Side& side, const SendWQE& wqe, u64 offset, u64 length) {
  if (range_count == ranges.size() || piece_count == pieces.size()) return false;
  const std::span room = std::span(pieces).subspan(piece_count);
  u32 count = 1;
  if (wqe.inline_bytes != nullptr) {
    if (side.where != Where::kHere) return false;
    room[0] = {const_cast<u8*>(wqe.inline_bytes) + offset, length};
  } else {
    const Access need = op == SendOp::kRDMAWrite ? Access::kLocalRead : Access::kLocalWrite;
    count = pieces_of(side, wqe.wr.sg_list, offset, length, need, room);
    if (count == 0) return false;
  }
  piece_count += count;
  ranges[range_count++] = {.r_key = wqe.wr.r_key,
                           .address = wqe.wr.remote_address + offset,
                           .length_bytes = static_cast<u32>(length),
                           .ends_message = offset + length == wqe.length_bytes};
  bytes += length;
  packets += (length + side.packet_bytes - 1) / side.packet_bytes;
  return true;
}

bool PeerCopy::carry_out(PeerMemory& peer, const QPAttributes& qp) const {
  const std::span own(pieces.data(), piece_count);
  const std::span theirs(ranges.data(), range_count);
  return op == SendOp::kRDMAWrite ? peer.write(qp, own, theirs) : peer.read(qp, theirs, own);
}

void PeerCopyCounts::count_in(EngineCounters& counters) const {
  const bool is_write = op == SendOp::kRDMAWrite;
  (is_write ? counters.local_write_requests : counters.local_read_requests) += finished;
  (is_write ? counters.local_write_packets : counters.local_read_packets) += packets;
  (is_write ? counters.local_write_bytes : counters.local_read_bytes) += bytes;
}

}  // namespace verbena
