// Memory that no pointer of this process leads to: another process's (memory/imported_memory.h), a
// GPU's, or, in tests, memory whose copies end late. It is the seam through which kinds of memory
// come in: a driver derives a kind from FarMemory, and nothing above this folder knows which.
//
// In place of a pointer a far region has a number that no pointer of a program equals. So code that
// takes pointers needs one test for both far memory and the null region: is_here().
//   | 1 | region (15) | offset in it (48) |
//
// Each kind guarantees the following, and the code above relies on it:
//   - Order. Jobs of one lane take effect in the order in which they begin, whatever the order in
//     which their ends are seen. Jobs of different lanes have no order. A QP has a lane for what it
//     sends and one for what it receives (memory/copy_lane.h).
//   - The last bytes last. The last aligned word of a write becomes visible after all its other
//     bytes, and after all writes of the lane that began before.
//   - Atomics of one region are atomic among themselves, as IBV_ATOMIC_HCA says. IBTA 10.6.3
//   - Acknowledgement after execution. An RC responder sends no response, and a device reports no
//     completion, before the jobs of its lane that began earlier have ended.
//   - Nothing is written for a QP that was reset or destroyed: the driver waits while has_orphans()
//     of memory/copy_queue.h says so.
//   - Deregistration waits. A region ends with remove(); jobs that run then still end, and
//     running() tells the driver when the last one has.
//   - A copy to a peer may fail because the peer's end cannot be reached. Then it changes nothing
//   that
//     packets would not change again.
//   - Errors. kGone of a write becomes the error that the same access to unmapped host memory
//     gives: remote access error, local protection error.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "memory/copy_job.h"
#include "memory/far_handle.h"

namespace verbena {

// Returns true if the CPU can access the byte. Returns false for nullptr (the null region) and for
// far memory.
[[nodiscard]] inline bool is_here(const u8* at) { return reinterpret_cast<std::intptr_t>(at) > 0; }

class FarMemory {
 public:
  virtual ~FarMemory() = default;
  // Begins a job; its bytes lie inside the region. A kind that copies at once returns kDone or
  // kGone and forgets the job. A kind that returns kRunning ends the job later. `job.bytes` of such
  // a kind lies in the staging memory that the region was registered with.
  [[nodiscard]] virtual CopyState begin(CopyJob& job) = 0;
  // Returns true if begin() may return kRunning.
  [[nodiscard]] virtual bool is_late() const { return false; }
  // Returns what peers of this host need to reach the memory by the same driver; nullptr: they
  // cannot.
  [[nodiscard]] virtual const FarHandle* handle() const { return nullptr; }
  // The device looks for ended jobs. A kind without a thread of its own makes progress here.
  virtual void poll() {}

  // Jobs that have begun and not ended. For the driver; any thread.
  [[nodiscard]] u32 running() const { return running_.load(std::memory_order_acquire); }

 private:
  friend class CopyQueue;
  friend struct CopyJob;
  std::atomic<u32> running_{0};
};

// The far regions of one device. One owner, the ProtectionTable.
class FarRegions {
 public:
  static constexpr u64 kMaxLength = u64{1} << 47;  // every address of a process

  // `skew`: the address of the region's first byte modulo 8 where it lies, so that alignment can be
  // seen. Returns the base of the region; nullopt if there are too many regions.
  [[nodiscard]] std::optional<u64> add(std::shared_ptr<FarMemory> memory, u32 skew);
  void remove(u64 base);  // `base`: as add() returned it
  [[nodiscard]] static bool is_far(u64 base) { return base >> 63 != 0; }
  [[nodiscard]] const FarMemory& memory_at(u64 base) const;  // `base`: likewise

  struct Place {
    const std::shared_ptr<FarMemory>& memory;
    u64 offset;  // in the region
  };
  // Precondition: is_here(at) is false, and `at` is not nullptr.
  [[nodiscard]] Place find(const u8* at) const;
  [[nodiscard]] const std::vector<std::shared_ptr<FarMemory>>& all() const { return regions_; }

 private:
  std::vector<std::shared_ptr<FarMemory>> regions_;  // nullptr: free
  std::vector<u8> skews_;
};

}  // namespace verbena
