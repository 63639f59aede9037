// QPCopies: the copies of one QP to and from far memory (memory/copy_lane.h), and the completions
// that wait for them: a CQE reaches its CQ when the writes that its work began have ended.
// EngineRunner drives it.
#pragma once

#include <vector>

#include "base/time.h"
#include "memory/copy_lane.h"
#include "transport/cqe.h"

namespace verbena {

// HeldCQEs: the held CQEs of one half of a QP, in the order in which the engine reported them.
class HeldCQEs {
 public:
  [[nodiscard]] bool empty() const { return first_ == cqes_.size(); }
  [[nodiscard]] u32 size() const { return static_cast<u32>(cqes_.size() - first_); }
  void push(const CQE& cqe, u64 after) { cqes_.push_back({cqe, after}); }
  // Returns nullptr if the oldest still waits for a write of `lane`.
  [[nodiscard]] const CQE* ready(const CopyLane& lane) const {
    return !empty() && lane.has_ended(cqes_[first_].after) ? &cqes_[first_].cqe : nullptr;
  }
  void pop() {
    if (++first_ == cqes_.size()) clear();
  }
  void clear() {
    cqes_.clear();
    first_ = 0;
  }
  // The write of `ticket` has failed: CQEs that waited for it are flushed, the first of them with
  // `status`. Returns false if there is none. None waits any longer.
  bool fail_from(u64 ticket, WQEStatus status) {
    bool any = false;
    for (std::size_t i = first_; i < cqes_.size(); ++i) {
      if (cqes_[i].after < ticket) continue;
      if (cqes_[i].cqe.status == WQEStatus::kSuccess)
        cqes_[i].cqe.status = any ? WQEStatus::kFlushed : status;
      cqes_[i].after = 0;
      any = true;
    }
    return any;
  }

 private:
  struct Held {
    CQE cqe;
    u64 after;  // the last ticket that was begun before it
  };
  std::vector<Held> cqes_;
  std::size_t first_ = 0;
};

struct QPCopies {
  static constexpr Duration kPeriod = us(5);  // between two looks at copies that run

  CopyLane sends, receives;
  HeldCQEs held_sends, held_receives;
  Time look_at = Time::never();
  // Bytes of the QP's stream that have arrived and wait for room in the lanes. Streams
  std::vector<u8> bytes;

  [[nodiscard]] bool is_waiting() const {
    return !bytes.empty() || sends.is_waiting() || receives.is_waiting() || !held_sends.empty() ||
           !held_receives.empty();
  }
  void clear() {
    sends.clear();
    receives.clear();
    held_sends.clear();
    held_receives.clear();
    bytes.clear();
    look_at = Time::never();
  }
};

}  // namespace verbena
