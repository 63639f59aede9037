// PeerCopy: a run of WRITEs or READs, or a part of a long one, that a requester copies itself to or
// from a peer of the same host (transport/peer_memory.h). Requesters decide when; this is the copy.
#pragma once

#include <algorithm>
#include <array>

#include "transport/engine.h"

namespace verbena {

// The size of a copy: its requests and bytes, and the packets that it replaces.
struct PeerCopyCounts {
  static constexpr u64 kBytesPerMessage = 4096;  // take as long as a message of few bytes

  SendOp op{};
  u32 range_count = 0;
  u32 finished = 0;  // WQEs that end in this copy
  u64 bytes = 0;
  u64 packets = 0;  // that the copy replaces

  [[nodiscard]] u64 cost() const { return bytes + range_count * kBytesPerMessage; }
  void count_in(EngineCounters& counters) const;
};

struct PeerCopy : PeerCopyCounts {
  static constexpr u64 kPartBytes = 1u << 20;  // in one call; a peer that deregisters waits for it
  static constexpr u64 kTurnBytes = 4u << 20;  // until other QPs have a turn
  static constexpr u64 kLatePartBytes = 64u << 20;  // likewise, between far memories

  // The requester, and the payload of the packets that it counts.
  struct Side {
    const ProtectionTable& memory;
    PDId pd;
    u32 packet_bytes;            // payload of a packet
    Where where = Where::kHere;  // our memory
    [[nodiscard]] u64 part_bytes() const {
      return where == Where::kHere ? kPartBytes : kLatePartBytes;
    }
  };

  union {  // its elements are not initialized: 4 KiB, and one is made for each copy
    std::array<MemoryPiece, PeerMemory::kMaxPieces> pieces;
  };
  union {
    std::array<PeerRange, PeerMemory::kMaxRanges> ranges;
  };
  u32 piece_count = 0;

  PeerCopy() {}
  [[nodiscard]] static bool is_copy(SendOp op) {
    return op == SendOp::kRDMAWrite || op == SendOp::kRDMARead;
  }

  // Collects similar WQEs from `first` on, of which `done` bytes are copied already, while `fits`.
  // Collects nothing if our own keys do not allow it: the packets will show the error.
  template <typename Fits>
  void collect(const Side& side, SendQueue& queue, u64 first, u64 end, u64 done, Fits fits) {
    for (u64 index = first; index != end; ++index) {
      const SendWQE& wqe = queue.at(index);
      if (!fits(wqe) || (range_count != 0 && wqe.wr.op != op)) return;
      op = wqe.wr.op;
      const u64 left = wqe.length_bytes - done;
      const u64 length = std::min(left, side.part_bytes());
      if (bytes + length > side.part_bytes() || !add(side, wqe, done, length)) return;
      if (length != left) return;
      ++finished;
      done = 0;
    }
  }
  // Returns false if the peer would not accept all of it, or cannot be reached.
  [[nodiscard]] bool carry_out(PeerMemory& peer, const QPAttributes& qp) const;

 private:
  [[nodiscard]] bool add(const Side& side, const SendWQE& wqe, u64 offset, u64 length);
};

}  // namespace verbena
