// LateMemory: host memory whose copies end late, and whose ends are seen out of order, from a seed.
// It keeps exactly what memory/far_memory.h promises, and no more.
#pragma once

#include <cstring>
#include <deque>
#include <optional>

#include "base/prng.h"
#include "memory/far_memory.h"

namespace verbena::test {

// Memory of a peer that LateMemory copies to and from.
struct LatePeer final : PeerRegion {
  explicit LatePeer(MutableBytes memory) : bytes(memory) {}
  const MutableBytes bytes;
  bool is_gone = false;
};

class LateMemory final : public FarMemory {
 public:
  LateMemory(MutableBytes bytes, PRNG prng) : bytes_(bytes), prng_(prng) {}

  [[nodiscard]] bool is_late() const override { return true; }
  [[nodiscard]] CopyState begin(CopyJob& job) override {
    if (entries_.empty() && prng_.chance(0.1)) return apply(job);  // done already
    entries_.push_back({&job, CopyState::kRunning});
    return CopyState::kRunning;
  }
  [[nodiscard]] const FarHandle* handle() const override {
    return published ? &*published : nullptr;
  }
  void poll() override {
    if (is_stuck) return;
    for (u64 i = prng_.below(4); i != 0 && !entries_.empty(); --i)
      end(prng_.below(entries_.size()));
  }
  // Ends all, as a driver does before the memory goes.
  void finish() {
    while (!entries_.empty()) end(0);
  }
  [[nodiscard]] std::size_t waiting() const { return entries_.size(); }

  bool is_gone = false;   // every job from now on fails
  bool is_stuck = false;  // no job ends
  std::optional<FarHandle> published;

 private:
  struct Entry {
    CopyJob* job;
    CopyState result;  // kRunning: it has had no effect yet
  };
  // The jobs of the lane before it take effect first; their ends are seen later.
  void end(u64 index) {
    CopyJob* const job = entries_[index].job;
    for (u64 i = 0; i <= index; ++i) {
      Entry& entry = entries_[i];
      if (entry.job->lane == job->lane && entry.result == CopyState::kRunning)
        entry.result = apply(*entry.job);
    }
    const CopyState result = entries_[index].result;
    entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(index));
    job->end(result);
  }
  [[nodiscard]] CopyState apply(CopyJob& job) {
    if (is_gone) return CopyState::kGone;
    u8* const at = bytes_.data() + job.offset;
    if (job.peer.region != nullptr) return apply_to_peer(job, at);
    if (job.op == CopyOp::kRead) std::memcpy(job.bytes, at, job.length);
    if (job.op == CopyOp::kWrite) std::memcpy(at, job.bytes, job.length);
    if (job.op == CopyOp::kRead || job.op == CopyOp::kWrite) return CopyState::kDone;
    u64 value;
    std::memcpy(&value, at, sizeof value);
    std::memcpy(job.bytes, &value, sizeof value);
    value = job.atomic_result(value);
    std::memcpy(at, &value, sizeof value);
    return CopyState::kDone;
  }

  [[nodiscard]] static CopyState apply_to_peer(const CopyJob& job, u8* at) {
    const LatePeer& peer = static_cast<const LatePeer&>(*job.peer.region);
    if (peer.is_gone) return CopyState::kGone;
    u8* const there = peer.bytes.data() + job.peer.offset;
    if (job.op == CopyOp::kToPeer) std::memcpy(there, at, job.length);
    if (job.op == CopyOp::kFromPeer) std::memcpy(at, there, job.length);
    return CopyState::kDone;
  }

  const MutableBytes bytes_;
  PRNG prng_;
  std::deque<Entry> entries_;
};

}  // namespace verbena::test
