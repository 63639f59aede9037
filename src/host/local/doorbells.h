// Doorbells: tell a process that others have put frames into its rings (frame_ring.h), and tell the
// others that it sleeps. In shared memory that all of them write. Zeroed memory means that no
// process rang and the owner is awake. A needless ring costs a look.
#pragma once

#include <array>
#include <atomic>
#include <utility>

#include "base/types.h"

namespace verbena::host {

class Doorbells {
 public:
  static constexpr u32 kWords = 16;  // 64 process slots each
  using Rung = std::array<u64, kWords>;

  // --- others
  // True when the owner sleeps, and the caller has to wake it: one of them does.
  [[nodiscard]] bool ring(u32 slot) {
    rung_[slot / 64].fetch_or(u64{1} << slot % 64, std::memory_order_seq_cst);
    return sleeps_.load(std::memory_order_seq_cst) != 0 &&
           sleeps_.exchange(0, std::memory_order_seq_cst) != 0;
  }

  // --- the owner
  // Adds to `rung` the bells that rang since the last call. Returns true if there were any.
  [[nodiscard]] bool take(Rung& rung) {
    if (!has_rung()) return false;
    bool any = false;
    for (u32 word = 0; word < kWords; ++word) {
      if (rung_[word].load(std::memory_order_relaxed) == 0) continue;
      rung[word] |= rung_[word].exchange(0, std::memory_order_seq_cst);
      any = true;
    }
    return any;
  }
  // The owner sleeps from now on, unless a process rang: call take() afterwards.
  void sleep() {
    if (sleeps_.load(std::memory_order_relaxed) == 0)
      sleeps_.exchange(1, std::memory_order_seq_cst);
  }
  void wake() {
    if (sleeps_.load(std::memory_order_relaxed) != 0) sleeps_.store(0, std::memory_order_relaxed);
  }

 private:
  // Asked by each poll of a program that waits: without a branch, or a loop.
  [[nodiscard]] bool has_rung() const { return any_of(std::make_index_sequence<kWords>()) != 0; }
  template <std::size_t... word>
  [[nodiscard]] u64 any_of(std::index_sequence<word...>) const {
    return (rung_[word].load(std::memory_order_relaxed) | ...);
  }

  alignas(64) std::array<std::atomic<u64>, kWords> rung_;
  alignas(64) std::atomic<u32> sleeps_;
};

}  // namespace verbena::host
