// LateCopy: a PeerCopy between far memory of both ends (memory/far_memory.h), which ends late: as
// tickets of the requester's lane. It is of the oldest requests that have not started, and none of
// the queue starts before it has ended. If it fails, they go as packets: the peer then answers as
// on any wire. After a refusal, some such requests are not tried; a request to the peer's other
// memory is none.
//   begin() true    while has_begun(), look() says whether it has ended
//   device          looks for ended copies of the lane, then calls the engine's on_timer()
#pragma once

#include "transport/peer_copy.h"

namespace verbena {

class LateCopy {
 public:
  enum class Result : u8 { kRunning, kDone, kRefused };

  // Returns true for a request whose payload is far memory of such a kind.
  [[nodiscard]] static bool is_for(const ProtectionTable& memory, PDId pd, const SendWQE& wqe);
  // Returns false, and has begun nothing, if the peer would not accept all of it, or cannot be
  // reached by a driver, or if no job is free. Then is_paused(first). Precondition: `copy` was
  // collected with Where::kLate, from the request `first` on.
  [[nodiscard]] bool begin(const PeerCopy& copy, u64 first, PeerMemory& peer,
                           const QPAttributes& qp, const ProtectionTable& memory, CopyLane& lane);
  // This request, and some behind it, go as packets: twice as many after each further refusal.
  void pause_from(u64 request);
  [[nodiscard]] bool is_paused(u64 request) const { return request < not_before_; }
  [[nodiscard]] bool has_begun() const { return has_begun_; }
  // kRunning: look again later. Otherwise it is over.
  [[nodiscard]] Result look(const CopyLane& lane);
  // The requests, bytes and packets of the last copy that began.
  [[nodiscard]] const PeerCopyCounts& counts() const { return counts_; }
  [[nodiscard]] LocalWork work() const;
  // The QP ends. What has begun still takes effect.
  void forget() { has_begun_ = false; }

 private:
  PeerCopyCounts counts_;
  u64 before_ = 0, last_ = 0;  // tickets: before the first job, and of the last
  bool has_begun_ = false;
  u64 not_before_ = 0;  // a request
  u32 refusals_ = 0;    // in a row
};

}  // namespace verbena
