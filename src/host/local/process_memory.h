// ProcessMemory: the memory of one process of this host: process_vm_writev(2) and
// process_vm_readv(2), by what its device publishes. As PeerMemory, after the checks that the
// peer's responder would make; and of regions that were imported, as long as they are there. The
// kernel allows these calls where it allows ptrace: for processes of the same user.
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
  [[nodiscard]] bool is_open() const {
    return segment_.header().open.load(std::memory_order_acquire) == 1;
  }
  // The ring for our frames to it; a ring without memory where there is none.
  [[nodiscard]] Mapping claim_ring();
  [[nodiscard]] Doorbells& doorbells() const { return segment_.shared().doorbells; }

  [[nodiscard]] bool write(const QPAttributes& qp, std::span<const MemoryPiece> from,
                           std::span<const PeerRange> to) override;
  [[nodiscard]] bool read(const QPAttributes& qp, std::span<const PeerRange> from,
                          std::span<const MemoryPiece> to) override;

  // --- what can be imported
  [[nodiscard]] int refusal() const;  // 0, or the errno with which the kernel refuses us all of it
  [[nodiscard]] bool exports(PDId pd) const { return segment_.device().keys.has(pd); }
  [[nodiscard]] std::optional<PublishedKey> exported(u32 key) const {
    return segment_.device().keys.find(key);
  }
  // False: the region is no longer there as it was, or some of its memory is not.
  [[nodiscard]] bool write(const PublishedKey& region, u64 offset, Bytes from);
  [[nodiscard]] bool read(const PublishedKey& region, u64 offset, MutableBytes to);

 private:
  struct Vectors;
  std::optional<u64> locate(const PublishedKey& region, u64 offset, u64 length, Access need) const;
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
