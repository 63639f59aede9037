// SharedBuffer: how a switch without loss divides its packet memory, and when that asks a neighbour
// to pause. Accounting is by ingress port and priority:
//   reserve    each port's own, before it takes from the shared pool
//   shared     up to alpha times what is left of it: dynamic thresholds (Choudhury and Hahne,
//              "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", 1998)
//   headroom   for what is still under way when a pause is asked for (IEEE 802.1Q, annex N)
// The egress side has no limit: what is admitted is sent.
//
// Invariant: what the counters hold is the sum of the frames admitted and not released.
#pragma once

#include <vector>

#include "base/prefetch.h"
#include "base/types.h"
#include "fabric/frame.h"

namespace verbena::fabric {

// All sizes in bytes.
struct SharedBufferConfig {
  u64 size = 32u << 20;
  u32 reserve = 4096;            // of each port
  u32 resume_offset = 3 * 1024;  // below the threshold, before a pause ends
};

class SharedBuffer {
 public:
  static constexpr u32 kAlphaOne = 1u << 16;  // alpha is a fraction with 16 binary places

  struct PortConfig {
    u32 headroom = 0;
    u32 alpha = kAlphaOne / 8;
  };

  SharedBuffer(const SharedBufferConfig& config, std::vector<PortConfig> ports);

  enum class Verdict : u8 {
    kAdmitted,
    kAdmittedPause,  // and the neighbour must pause this priority
    kRefused,        // no room: the frame is lost
  };
  // Admits a frame of a priority without PFC: it gets only the reserve and its part of the pool,
  // and asks for no pause. Returns false if the frame is lost.
  [[nodiscard]] bool admit_lossy(u32 port, u32 priority, u32 bytes);
  // A frame that does not obey the pause cannot be held back, and headroom is not meant for it: it
  // may fill the whole buffer.
  [[nodiscard]] Verdict admit(u32 port, u32 priority, u32 bytes, bool obeys_pause = true);
  // Releases an admitted frame. Returns true if the pause of this port and priority ends.
  [[nodiscard]] bool release(u32 port, u32 priority, u32 bytes);

  [[nodiscard]] bool paused(u32 port, u32 priority) const { return of(port, priority).paused; }
  [[nodiscard]] u64 used(u32 port, u32 priority) const {
    return of(port, priority).ingress + of(port, priority).headroom_used;
  }
  [[nodiscard]] u64 threshold(u32 port) const;
  // Prefetches the data that frames need into the cache.
  void fetch() const {
    prefetch_bytes(accounts_.data(), accounts_.size() * sizeof(Account));
    prefetch_bytes(ports_.data(), ports_.size() * sizeof(PortConfig));
  }
  [[nodiscard]] u64 shared_used() const { return shared_used_; }

 private:
  struct Account {
    u32 ingress = 0, headroom_used = 0;
    bool paused = false;
  };
  Account& of(u32 port, u32 priority) { return accounts_[port * kPriorities + priority]; }
  const Account& of(u32 port, u32 priority) const {
    return accounts_[port * kPriorities + priority];
  }
  u32 shared_of(const Account& account) const {
    return account.ingress > config_.reserve ? account.ingress - config_.reserve : 0;
  }
  bool has_room(u32 bytes) const;
  void charge(Account& account, u32 port, u32 bytes, bool obeys_pause);

  const SharedBufferConfig config_;
  const std::vector<PortConfig> ports_;
  u64 pool_ = 0;  // the size without reserves and headroom
  u64 shared_used_ = 0;
  u64 total_used_ = 0;
  std::vector<Account> accounts_;
};

}  // namespace verbena::fabric
