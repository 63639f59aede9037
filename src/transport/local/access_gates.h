// AccessGates: how a process that withdraws a key or a QP knows that no peer is still copying by
// what it read before. One gate for each process slot: a peer passes in before it reads what is
// published, and out when its copy is done; the owner withdraws first, then waits until each gate
// has been seen shut or has moved on.
// In shared memory; zeroed memory is all gates shut.
#pragma once

#include <array>
#include <atomic>

#include "base/types.h"

namespace verbena {

class AccessGates {
 public:
  static constexpr u32 kGates = 1024;

  // --- the peer's side: one access at a time through a gate. Once before the first:
  void come() { has_visitors_.store(1, std::memory_order_seq_cst); }
  // How often something has been withdrawn up to now.
  u64 pass_in(u32 gate) {
    // Sequentially consistent: either the owner sees the gate open, or we see what it withdrew.
    gates_[gate].fetch_add(1, std::memory_order_seq_cst);
    return withdrawals_.load(std::memory_order_seq_cst);
  }
  [[nodiscard]] u64 withdrawals() const { return withdrawals_.load(std::memory_order_seq_cst); }
  void pass_out(u32 gate) { gates_[gate].fetch_add(1, std::memory_order_release); }

  // --- the owner's side
  // What was withdrawn before this call is gone for all who pass in after it.
  void on_withdrawn() { withdrawals_.fetch_add(1, std::memory_order_seq_cst); }
  // False: no gate has ever been open.
  [[nodiscard]] bool has_visitors() const {
    return has_visitors_.load(std::memory_order_seq_cst) != 0;
  }
  [[nodiscard]] u32 look(u32 gate) const { return gates_[gate].load(std::memory_order_seq_cst); }
  [[nodiscard]] static bool is_open(u32 look) { return look % 2 != 0; }
  // For the owner of a gate that has ended inside.
  void shut(u32 gate) { gates_[gate].store(0, std::memory_order_relaxed); }

 private:
  alignas(64) std::atomic<u64> withdrawals_;
  std::atomic<u32> has_visitors_;
  alignas(64) std::array<std::atomic<u32>, kGates> gates_;
};

}  // namespace verbena
