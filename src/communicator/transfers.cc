#include "communicator/transfers.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "coll/reduce/reduce.h"

namespace verbena::coll {
namespace {

constexpr u32 kNoRail = ~u32{0};
constexpr u32 kMostOutstanding = 4;  // pieces of one transfer and rail

}  // namespace

void Transfers::start(Transfer transfer) {
  u32 number;
  if (free_transfers_.empty()) {
    number = static_cast<u32>(transfers_.size());
    transfers_.emplace_back();
  } else {
    number = free_transfers_.back();
    free_transfers_.pop_back();
  }
  transfers_[number] = Active{std::move(transfer)};
  transfers_[number].is_used = true;
  ++active_;
  post_pieces(number);
}

void Transfers::post_pieces(u32 number) {
  Active& transfer = transfers_[number];
  while (transfer.posted < transfer.length && !transfer.is_lost)
    if (!post_piece(number)) break;
  if (transfer.posted < transfer.length && !transfer.is_stalled && !transfer.is_lost) {
    transfer.is_stalled = true;
    stalled_.push_back(number);
  }
}

u32 Transfers::rail_for(const Connection& connection) {
  for (u32 i = 0; i < connection.rails(); ++i) {
    const u32 rail = (next_rail_ + i) % connection.rails();
    if (!connection.can_read(rail)) continue;
    next_rail_ = rail + 1;
    return rail;
  }
  return kNoRail;
}

bool Transfers::post_piece(u32 number) {
  Active& transfer = transfers_[number];
  Connection& connection = *connections_[transfer.peer];
  if (connection.is_broken()) {
    transfer.is_lost = true;
    if (transfer.outstanding == 0) end(number);
    return false;
  }
  if (transfer.outstanding >= kMostOutstanding * connection.rails()) return false;
  const u32 rail = rail_for(connection);
  if (rail == kNoRail) return false;
  const bool direct = transfer.direct != nullptr;
  const u32 buffer = direct ? BufferPool::kNone : buffers_.take();
  if (!direct && buffer == BufferPool::kNone) return false;
  const u32 bytes = static_cast<u32>(
      std::min(transfer.length - transfer.posted, direct ? kDirectPieceBytes : kPieceBytes));
  if (free_pieces_.empty()) {
    free_pieces_.push_back(static_cast<u32>(pieces_.size()));
    pieces_.emplace_back();
  }
  const u32 piece = free_pieces_.back();
  free_pieces_.pop_back();
  pieces_[piece] = {number, buffer, transfer.posted, bytes};
  const u8* const to = direct ? transfer.to + transfer.posted : buffers_.at(buffer);
  const u64 from = transfer.from.address + transfer.posted;
  transfer.posted += bytes;
  ++transfer.outstanding;
  connection.read(rail, piece, reinterpret_cast<u64>(to),
                  (direct ? *transfer.direct : memory_).lkey(rail), from, transfer.from.rkeys[rail],
                  bytes);
  return true;
}

void Transfers::land(Active& transfer, const Piece& piece) {
  if (piece.buffer != BufferPool::kNone) {
    u8* const to = transfer.to + piece.offset;
    const u8* const from = buffers_.at(piece.buffer);
    if (transfer.action == collectives::Action::kReduce)
      combine(transfer.type, transfer.op, to, transfer.base + piece.offset, from, piece.bytes);
    else
      std::memcpy(to, from, piece.bytes);
  }
  transfer.landed += piece.bytes;
}

void Transfers::on_read(u32 number, bool failed) {
  const Piece piece = pieces_[number];
  free_pieces_.push_back(number);
  Active& transfer = transfers_[piece.transfer];
  --transfer.outstanding;
  if (failed)
    transfer.is_lost = true;
  else
    land(transfer, piece);
  if (piece.buffer != BufferPool::kNone) buffers_.give_back(piece.buffer);
  if (transfer.is_lost ? transfer.outstanding == 0 : transfer.landed == transfer.length)
    return end(piece.transfer);
  post_pieces(piece.transfer);
}

void Transfers::end(u32 number) {
  Active& transfer = transfers_[number];
  const std::shared_ptr<Request> owner = std::move(transfer.owner);
  const bool lost = transfer.is_lost;
  const u32 peer = transfer.peer, token = transfer.token, lane = transfer.lane;
  if (!transfer.is_stalled) free_transfers_.push_back(number);  // else resume() frees it
  transfer.is_used = false;
  --active_;
  if (lost) return owner->on_transfer_lost();
  acknowledger_.on_all_read(peer, token);
  owner->on_transferred(lane);
}

void Transfers::resume() {
  if (stalled_.empty()) return;
  const std::vector<u32> before = std::exchange(stalled_, {});
  for (const u32 number : before) {
    transfers_[number].is_stalled = false;
    if (transfers_[number].is_used)
      post_pieces(number);
    else
      free_transfers_.push_back(number);
  }
}

}  // namespace verbena::coll
