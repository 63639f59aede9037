#include "transport/stream_gather.h"

#include <cstring>

#include "base/check.h"

namespace verbena {
namespace {

// Payload that is copied, and the headers of the smallest units.
constexpr u32 kArenaBytes = StreamGather::kMaxBytes + (64 << 10) + StreamGather::kMaxPieces * 64;

}  // namespace

StreamGather::StreamGather() : pieces_(new Bytes[kMaxPieces]), arena_(new u8[kArenaBytes]) {}

bool StreamGather::has_room_for(u32 bytes) const {
  if (count_ == 0) return true;
  return count_ + kPiecesOfUnit <= kMaxPieces && bytes_ + bytes <= kMaxBytes;
}

void StreamGather::add(Bytes bytes) {
  if (bytes.empty()) return;
  CHECK(count_ < kMaxPieces);
  pieces_[count_++] = bytes;
  bytes_ += static_cast<u32>(bytes.size());
}

void StreamGather::add_copy(Bytes bytes) {
  if (bytes.empty()) return;
  CHECK(used_ + bytes.size() <= kArenaBytes);
  u8* const to = arena_.get() + used_;
  std::memcpy(to, bytes.data(), bytes.size());
  used_ += static_cast<u32>(bytes.size());
  if (count_ == 0 || pieces_[count_ - 1].data() + pieces_[count_ - 1].size() != to)
    return add({to, bytes.size()});
  pieces_[count_ - 1] = {pieces_[count_ - 1].data(), pieces_[count_ - 1].size() + bytes.size()};
  bytes_ += static_cast<u32>(bytes.size());
}

}  // namespace verbena
