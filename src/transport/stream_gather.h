// StreamGather: the bytes that a stream sends next, as pieces: headers and trailers lie in it,
// payload lies where it is registered. A driver owns one for all its streams, fills it by
// StreamEngine::gather() and hands the pieces to one system call.
// Invariant: no allocation after construction. Pieces are good until clear() or the next input of
// the device.
#pragma once

#include <memory>
#include <span>

#include "memory/payload.h"

namespace verbena {

class StreamGather {
 public:
  static constexpr u32 kMaxPieces = 512;
  // More are added only to end a unit. Larger calls wait in the socket for the kernel's pacing, and
  // are half as fast: docs/iwarp.md.
  static constexpr u32 kMaxBytes = 128 << 10;

  StreamGather();

  void clear() { count_ = bytes_ = used_ = 0; }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] std::span<const Bytes> pieces() const { return {pieces_.get(), count_}; }
  [[nodiscard]] u32 bytes() const { return bytes_; }
  // Whether a unit of so many bytes fits, with kMaxSGE pieces of payload.
  [[nodiscard]] bool has_room_for(u32 bytes) const;

  void add(Bytes bytes);       // stays where it is
  void add_copy(Bytes bytes);  // is copied: one piece with the copies right before it
  // The last so many bytes, which were copied: nobody changes them.
  [[nodiscard]] Bytes last_copied(u32 bytes) const { return {arena_.get() + used_ - bytes, bytes}; }
  // Calls visit(Bytes) for the bytes [from, to) of all pieces, in order.
  template <typename Visit>
  void visit_range(u32 from, u32 to, Visit visit) const {
    u32 at = 0;
    for (const Bytes& piece : pieces()) {
      const u32 end = at + static_cast<u32>(piece.size());
      const u32 begin_here = from > at ? from - at : 0;
      const u32 end_here = to < end ? to - at : static_cast<u32>(piece.size());
      if (to > at && begin_here < end_here) visit(piece.subspan(begin_here, end_here - begin_here));
      at = end;
    }
  }

 private:
  static constexpr u32 kPiecesOfUnit = kMaxSGE + 2;  // header, payload, trailer
  std::unique_ptr<Bytes[]> pieces_;
  std::unique_ptr<u8[]> arena_;  // its first `used_` bytes are copies
  u32 count_ = 0, bytes_ = 0, used_ = 0;
};

}  // namespace verbena
