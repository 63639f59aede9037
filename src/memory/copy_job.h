// CopyJob: one access to far memory (memory/far_memory.h), at most kCopySlotBytes long, or a copy
// of any length between it and a peer's far memory. The device begins the job; the memory kind ends
// it by end(), from any thread. Until then `bytes` belongs to the kind. The device looks at state()
// and never waits.
#pragma once

#include <atomic>
#include <memory>

#include "memory/peer_place.h"
#include "memory/sge.h"

namespace verbena {

inline constexpr u32 kCopySlotBytes = 4096;  // the largest path MTU

enum class CopyOp : u8 { kRead, kWrite, kCompareSwap, kFetchAdd, kToPeer, kFromPeer };

enum class CopyState : u8 {
  kRunning,
  kDone,
  kGone,  // some byte does not exist, or the region has ended
};

class FarMemory;

struct CopyJob {
  CopyOp op = CopyOp::kRead;
  u32 lane = 0;         // jobs of one lane take effect in the order in which they begin
  u64 offset = 0;       // in the region
  u8* bytes = nullptr;  // kRead fills it; kWrite copies from it; atomics store the original
  PeerPlace peer;       // kToPeer, kFromPeer: the other end
  u32 length = 0;       // kCompareSwap, kFetchAdd: 8
  // Atomics, in the byte order of this host. A compare-and-swap compares and swaps the bits of its
  // masks (RFC 7306, 5.2.3); a compare mask of 0 swaps always.
  u64 compare = 0;
  u64 operand = 0;  // to swap in or to add
  u64 compare_mask = ~u64{0}, swap_mask = ~u64{0};
  std::shared_ptr<FarMemory> memory;
  std::shared_ptr<void> pool;  // keeps this job and `bytes` alive while the job runs

  // Returns the value that an atomic leaves where it has found `value`.
  [[nodiscard]] u64 atomic_result(u64 value) const {
    if (op == CopyOp::kFetchAdd) return value + operand;
    if (((value ^ compare) & compare_mask) != 0) return value;
    return (value & ~swap_mask) | (operand & swap_mask);
  }

  [[nodiscard]] CopyState state() const { return state_.load(std::memory_order_acquire); }
  void start() { state_.store(CopyState::kRunning, std::memory_order_relaxed); }
  // The job may be used again at once, so `this` must not be touched afterwards.
  void end(CopyState state);

 private:
  std::atomic<CopyState> state_{CopyState::kDone};
};

}  // namespace verbena
