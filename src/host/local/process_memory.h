// ProcessMemory: the PeerMemory of one process of this host: process_vm_writev(2) and
// process_vm_readv(2), after the checks that the peer's responder would make, by what its device
// publishes. The kernel allows these calls where it allows ptrace: for processes of the same user.
#pragma once

#include "host/local/segment.h"
#include "transport/peer_memory.h"

namespace verbena::host {

class ProcessMemory final : public PeerMemory {
 public:
  // `own_slot` is the gate that we pass. `enabled` outlives this: false: it does nothing.
  ProcessMemory(PeerSegment segment, u32 pid, u32 own_slot, const std::atomic<bool>& enabled);

  [[nodiscard]] bool is_alive() const {
    return LifeSign::is_alive(life_) && segment_.header().life.look() == life_;
  }
  [[nodiscard]] bool has(const GID& gid) const;

  [[nodiscard]] bool write(const QPAttributes& qp, std::span<const MemoryPiece> from,
                           std::span<const PeerRange> to) override;
  [[nodiscard]] bool read(const QPAttributes& qp, std::span<const PeerRange> from,
                          std::span<const MemoryPiece> to) override;

 private:
  struct Vectors;
  bool translate(const QPAttributes& qp, std::span<const PeerRange> ranges, Access need,
                 Vectors& out) const;
  template <typename Copy>
  bool copy(const Vectors& vectors, Copy call);

  PeerSegment segment_;
  u32 pid_, own_slot_;
  LifeSign::Look life_;
  const std::atomic<bool>& enabled_;
  bool refused_ = false;  // by the kernel, for good
};

}  // namespace verbena::host
