// Far memory whose copies end late, and a peer that a requester reaches by such copies
// (transport/late_copy.h), for tests of the transports.
#pragma once

#include "memory/late_memory_for_test.h"
#include "transport/local/local_progress.h"
#include "transport/peer_memory.h"

namespace verbena::test {

inline constexpr PDId kFarPD{1};

// Far memory of one side, at the address 0. The first bytes come from the seed.
struct FarBuffer {
  FarBuffer(ProtectionTable& table, u64 bytes, u64 seed)
      : memory(bytes), late(std::make_shared<LateMemory>(memory, PRNG(seed))) {
    constexpr AccessFlags kRights =
        Access::kLocalWrite | Access::kRemoteWrite | AccessFlags(Access::kRemoteRead);
    PRNG content(seed);
    for (std::size_t i = 0; i < 4096; ++i) memory[i] = static_cast<u8>(content.next());
    table.copies().use_staging(std::shared_ptr<u8[]>(new u8[CopyQueue::kStagingBytes]));
    keys = *table.register_far(kFarPD, late, 0, bytes, 0, kRights);
  }
  ~FarBuffer() { late->finish(); }
  FarBuffer(const FarBuffer&) = delete;
  FarBuffer& operator=(const FarBuffer&) = delete;

  std::vector<u8> memory;
  std::shared_ptr<LateMemory> late;
  MRKeys keys;
};

// The far memory of a pair's other side, as its keys allow.
class FarPeer final : public PeerMemory, public PeerMemoryFinder {
 public:
  void reach(const ProtectionTable& table, QPN qpn, FarBuffer& buffer) {
    table_ = &table;
    qpn_ = qpn;
    region = std::make_shared<LatePeer>(MutableBytes(buffer.memory));
  }
  std::shared_ptr<PeerMemory> find(const QPAttributes&) override {
    return std::shared_ptr<PeerMemory>(std::shared_ptr<void>(), this);
  }
  bool has_executed(const QPAttributes&, PSN before) const override {
    return progress->is_at(qpn_, before);
  }
  bool write(const QPAttributes&, std::span<const MemoryPiece>,
             std::span<const PeerRange>) override {
    return false;
  }
  bool read(const QPAttributes&, std::span<const PeerRange>,
            std::span<const MemoryPiece>) override {
    ++host_reads;
    return false;
  }
  Admission admit(const QPAttributes&, Access need, std::span<const PeerRange> ranges,
                  std::span<PeerPlace> out) override {
    ++asked;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      const PeerRange& range = ranges[i];
      const Resolved at =
          table_->remote(kFarPD, qpn_, range.r_key, range.address, range.length_bytes, need);
      if (refuses || !at) return Admission::kRefused;
      if (is_here(at.data)) return Admission::kOtherMemory;
      out[i] = {region, table_->far().find(at.data).offset, hold};
    }
    return Admission::kAdmitted;
  }
  void on_copied(const QPAttributes&, const LocalWork& work) override {
    writes += work.writes;
    reads += work.reads;
  }

  const std::unique_ptr<LocalProgress> progress = std::make_unique<LocalProgress>();
  std::shared_ptr<LatePeer> region;
  std::shared_ptr<const int> hold = std::make_shared<const int>(0);
  bool refuses = false;
  u32 asked = 0, host_reads = 0;
  u64 writes = 0, reads = 0;

 private:
  const ProtectionTable* table_ = nullptr;
  QPN qpn_;
};

}  // namespace verbena::test
