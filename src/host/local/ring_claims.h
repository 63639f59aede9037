// RingClaims: whose each ring of a segment is: a peer claims one before its first frame, and keeps
// it. The ring of one that has ended may be taken over by another. In shared memory that all peers
// write; zeroed memory: none is claimed.
#pragma once

#include <array>
#include <atomic>
#include <optional>

#include "base/types.h"
#include "host/sharing/qpn_slot.h"

namespace verbena::host {

class RingClaims {
 public:
  static constexpr u32 kRings = 64;

  [[nodiscard]] std::optional<u32> find(u32 slot) const {
    const u32 ring = ring_of_[slot].load(std::memory_order_acquire);
    return ring == 0 || ring > kRings ? std::nullopt : std::optional(ring - 1);
  }
  // Returns nullopt if all are taken.
  [[nodiscard]] std::optional<u32> claim(u32 slot) {
    if (const std::optional<u32> ring = find(slot)) return ring;
    for (u32 used = used_.load(); used < kRings;)
      if (used_.compare_exchange_weak(used, used + 1)) return give(slot, used + 1);
    return std::nullopt;
  }
  // Takes the ring of `ended`, which no longer uses it. Returns nullopt if another process was
  // faster.
  [[nodiscard]] std::optional<u32> take_over(u32 slot, u32 ended) {
    const u8 ring = ring_of_[ended].exchange(0);
    return ring == 0 || ring > kRings ? std::nullopt : give(slot, ring);
  }

 private:
  std::optional<u32> give(u32 slot, u32 ring) {
    ring_of_[slot].store(static_cast<u8>(ring), std::memory_order_release);
    return ring - 1;
  }

  std::atomic<u32> used_;
  std::array<std::atomic<u8>, kLastSlot + 1> ring_of_;  // plus 1
};

}  // namespace verbena::host
