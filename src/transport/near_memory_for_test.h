// For tests: the memory of another end in this process, as a driver reaches it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "memory/sg_walk.h"
#include "transport/peer_memory.h"

namespace verbena::test {

// Copies from pieces to pieces of the same length together.
inline void copy_pieces(std::span<const MemoryPiece> from, std::span<const MemoryPiece> to) {
  std::size_t next = 0;
  MemoryPiece into;
  for (MemoryPiece piece : from)
    while (piece.length_bytes != 0) {
      if (into.length_bytes == 0) {
        ASSERT_LT(next, to.size());
        into = to[next++];
      }
      const u64 bytes = std::min(piece.length_bytes, into.length_bytes);
      std::memmove(into.data, piece.data, bytes);
      piece = {piece.data + bytes, piece.length_bytes - bytes};
      into = {into.data + bytes, into.length_bytes - bytes};
    }
  EXPECT_EQ(into.length_bytes, 0u);
  EXPECT_EQ(next, to.size());
}

// A WRITE to `ranges` of the target, or a READ of them. False: its keys do not allow it.
template <typename Target>
[[nodiscard]] bool copy_near(Target& target, PDId pd, std::span<const PeerRange> ranges,
                             std::span<const MemoryPiece> pieces, Access need) {
  std::vector<MemoryPiece> far;
  for (const PeerRange& range : ranges) {
    const Resolved at = target.memory.remote(pd, target.qp.qpn, range.r_key, range.address,
                                             range.length_bytes, need);
    if (!at) return false;
    far.push_back({at.data, range.length_bytes});
  }
  need == Access::kRemoteWrite ? copy_pieces(pieces, far) : copy_pieces(far, pieces);
  return true;
}

}  // namespace verbena::test
