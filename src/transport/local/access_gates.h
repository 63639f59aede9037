// AccessGates: how a process that withdraws a key or a QP learns that no peer still copies by what
// it read before. There is one gate for each process slot. A peer enters before it reads the
// published tables, and leaves when its copy is done. The owner first withdraws, then waits until
// it has seen each gate shut, or each gate's count has changed.
// Lies in shared memory; in zeroed memory all gates are shut.
#pragma once

#include <array>
#include <atomic>

#include "base/types.h"

namespace verbena {

class AccessGates {
 public:
  static constexpr u32 kGates = 1024;

  // --- the peer's side: one access at a time through a gate. To be called once before the first:
  void come() { has_visitors_.store(1, std::memory_order_seq_cst); }
  struct Entry {
    u32 look;         // of the open gate, for pass_out()
    u64 withdrawals;  // how often something had been withdrawn
  };
  Entry pass_in(u32 gate) {
    // Sequentially consistent: either the owner sees the gate open, or the peer sees the
    // withdrawal.
    const u32 look = gates_[gate].fetch_add(1, std::memory_order_seq_cst) + 1;
    return {look, withdrawals_.load(std::memory_order_seq_cst)};
  }
  [[nodiscard]] u64 withdrawals() const { return withdrawals_.load(std::memory_order_seq_cst); }
  // Leaves the gate that pass_in() opened. An owner that did not wait may have shut it already.
  void pass_out(u32 gate, u32 look) {
    gates_[gate].compare_exchange_strong(look, look + 1, std::memory_order_release,
                                         std::memory_order_relaxed);
  }

  // --- the owner's side
  // Peers that enter after this call do not see what was withdrawn before it.
  void on_withdrawn() { withdrawals_.fetch_add(1, std::memory_order_seq_cst); }
  // Returns false if no gate has ever been open.
  [[nodiscard]] bool has_visitors() const {
    return has_visitors_.load(std::memory_order_seq_cst) != 0;
  }
  [[nodiscard]] u32 look(u32 gate) const { return gates_[gate].load(std::memory_order_seq_cst); }
  [[nodiscard]] static bool is_open(u32 look) { return look % 2 != 0; }
  // For a gate whose peer has ended inside, or is stopped there and may still leave.
  void shut(u32 gate) {
    if (const u32 seen = look(gate); is_open(seen)) pass_out(gate, seen);
  }

 private:
  alignas(64) std::atomic<u64> withdrawals_;
  std::atomic<u32> has_visitors_;
  alignas(64) std::array<std::atomic<u32>, kGates> gates_;
};

}  // namespace verbena
