// ProcessMemory: the memory of one process of this host, by what its device publishes: mapped where
// it can be (peer_mappings.h), else process_vm_writev(2) and process_vm_readv(2). As PeerMemory,
// after the checks that the peer's responder would make; and of regions that were imported, as long
// as they are there.
// The kernel allows all of it where it allows ptrace: for processes of the same user.
//
// Both calls respect the protection of the peer's pages. /proc/PID/mem, which takes 0.4 us less for
// a few bytes, does not: it writes to pages that the peer has made read-only.
#pragma once

#include "host/local/late_gate.h"
#include "host/local/peer_far_regions.h"
#include "host/local/peer_mappings.h"
#include "host/local/segment.h"
#include "host/local/staging.h"
#include "transport/peer_memory.h"

namespace verbena::host {

class ProcessMemory final : public PeerMemory, public std::enable_shared_from_this<ProcessMemory> {
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

  // Its QP `qp.dest_qp` accepts requests of `qp`.
  [[nodiscard]] bool accepts_from(const QPAttributes& qp) const {
    PublishedQP peer;
    return segment_.device().qps.find(qp.dest_qp, peer) && peer.accepts_from(qp);
  }
  [[nodiscard]] bool has_executed(const QPAttributes& qp, PSN before) const override {
    return segment_.device().progress.is_at(qp.dest_qp, before);
  }
  [[nodiscard]] bool write(const QPAttributes& qp, std::span<const MemoryPiece> from,
                           std::span<const PeerRange> to) override;
  [[nodiscard]] bool read(const QPAttributes& qp, std::span<const PeerRange> from,
                          std::span<const MemoryPiece> to) override;
  [[nodiscard]] Admission admit(const QPAttributes& qp, Access need,
                                std::span<const PeerRange> ranges,
                                std::span<PeerPlace> out) override;
  void on_copied(const QPAttributes& qp, const LocalWork& work) override {
    segment_.shared().counts.add(qp.dest_qp, work);
  }

  // Unmaps the regions that the peer has withdrawn.
  void drop_withdrawn();
  [[nodiscard]] u32 mapped() const { return mappings_.count(); }  // regions

  // --- what can be imported
  [[nodiscard]] int refusal() const;  // 0, or the errno with which the kernel refuses us all of it
  [[nodiscard]] bool exports(PDId pd) const { return segment_.device().keys.has(pd); }
  [[nodiscard]] std::optional<PublishedKey> exported(u32 key) const {
    const std::optional<PublishedKey> found = segment_.device().keys.find(key);
    return found && found->is_far() ? std::nullopt : found;
  }
  // Return false if the region has changed or is gone, or if some of its memory is gone.
  [[nodiscard]] bool write(const PublishedKey& region, u64 offset, Bytes from);
  [[nodiscard]] bool read(const PublishedKey& region, u64 offset, MutableBytes to);

 private:
  struct Vectors;
  struct Targets;
  class Passage;
  class Hold;
  template <typename Take>
  bool take_each(const QPAttributes& qp, std::span<const PeerRange> ranges, Access need, Take take);
  std::optional<u64> locate(const PublishedKey& region, u64 offset, u64 length, Access need) const;
  bool translate(const QPAttributes& qp, std::span<const PeerRange> ranges, Access need,
                 Targets& out);
  // By what is mapped here, and by the kernel.
  bool write_here(std::span<const MemoryPiece> from, std::span<const PeerRange> to,
                  const Targets& targets) const;
  bool read_here(std::span<const PeerRange> from, const Targets& targets,
                 std::span<const MemoryPiece> to) const;
  bool write_there(std::span<const MemoryPiece> from, std::span<const PeerRange> to,
                   const Targets& targets);
  bool read_there(std::span<const PeerRange> from, const Targets& targets,
                  std::span<const MemoryPiece> to);
  template <typename Is>
  static bool any_piece(std::span<const MemoryPiece> ours, std::span<const PeerRange> theirs,
                        const Targets& targets, Is is);
  template <typename Do>
  static bool all_pieces(std::span<const MemoryPiece> ours, const Targets& targets, Do copy_one);
  bool write_staged(Bytes from, u64 to);
  bool read_staged(u64 from, MutableBytes to);
  template <typename Copy>
  bool copy(const Vectors& vectors, Copy call);

  PeerSegment segment_;
  u32 pid_, own_slot_;
  LifeSign::Look life_;
  const std::atomic<bool>& enabled_;
  bool refused_ = false;  // by the kernel, for good
  PeerMappings mappings_;
  PeerFarRegions far_regions_;
  LateGate late_gate_;
  Staging staging_;
  u64 withdrawals_ = 0;  // of the peer, when we last looked at what we have mapped
};

}  // namespace verbena::host
