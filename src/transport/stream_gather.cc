#include "transport/stream_gather.h"

#include <cstring>

#include "base/check.h"

namespace verbena {
namespace {

// Payload that is copied, and the headers of the smallest units.
constexpr u32 kArenaOctets = StreamGather::kMaxOctets + (64 << 10) + StreamGather::kMaxPieces * 64;

}  // namespace

StreamGather::StreamGather() : pieces_(new Bytes[kMaxPieces]), arena_(new u8[kArenaOctets]) {}

bool StreamGather::has_room_for(u32 octets) const {
  if (count_ == 0) return true;
  return count_ + kPiecesOfUnit <= kMaxPieces && octets_ + octets <= kMaxOctets;
}

void StreamGather::add(Bytes bytes) {
  if (bytes.empty()) return;
  CHECK(count_ < kMaxPieces);
  pieces_[count_++] = bytes;
  octets_ += static_cast<u32>(bytes.size());
}

void StreamGather::add_copy(Bytes bytes) {
  if (bytes.empty()) return;
  CHECK(used_ + bytes.size() <= kArenaOctets);
  u8* const to = arena_.get() + used_;
  std::memcpy(to, bytes.data(), bytes.size());
  used_ += static_cast<u32>(bytes.size());
  if (count_ == 0 || pieces_[count_ - 1].data() + pieces_[count_ - 1].size() != to)
    return add({to, bytes.size()});
  pieces_[count_ - 1] = {pieces_[count_ - 1].data(), pieces_[count_ - 1].size() + bytes.size()};
  octets_ += static_cast<u32>(bytes.size());
}

}  // namespace verbena
