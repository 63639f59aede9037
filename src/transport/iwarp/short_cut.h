// ShortCut: the WRITEs and READs of an iWARP requester that need no messages, because the peer is a
// process of this host (transport/peer_memory.h). It copies only while the peer has executed every
// message of ours, so that nothing overtakes. RFC 5040, 5.5 (ordering) permits more.
//   a short request while messages are under way   becomes a message itself
//   one of 64 KiB and more, or after 16 such       waits for the peer, 20 ms at most
//   one that the peer would refuse                 becomes a message, which is answered as ever
// Sans-IO; no allocation after construction.
#pragma once

#include <memory>

#include "transport/late_copy.h"

namespace verbena::iwarp {

class ShortCut {
 public:
  // The messages of both kinds that the stream has carried so far.
  struct Progress {
    u32 sent = 0, received = 0;
    bool is_between = false;  // no message is sent in part, and none is unanswered
  };

  explicit ShortCut(const EngineParts& parts)
      : qp_(parts.attributes),
        memory_(parts.memory),
        lane_(parts.send_copies),
        finder_(parts.peers) {}

  void begin(u32 segment_bytes);
  void end();  // Error or Reset: the peer is looked for no more
  void on_timer() { wakes_at_ = Time::never(); }
  [[nodiscard]] Time next_timer() const { return wakes_at_; }

  // Copies requests of the queue from `first` on. Returns how many are done. Precondition: `first`
  // may start.
  [[nodiscard]] u32 take(SendQueue& queue, u64 first, const Progress& progress,
                         EngineCounters& counters, Time now);
  // Returns whether the request shall wait for take() instead of becoming a message.
  [[nodiscard]] bool holds(const SendWQE& wqe, u64 index) const;
  // A request is copied in part, or a copy of it runs.
  [[nodiscard]] bool is_inside() const { return copied_bytes_ != 0 || late_.has_begun(); }

 private:
  [[nodiscard]] bool fits(const SendWQE& wqe) const;
  [[nodiscard]] bool find_peer(u64 index);
  [[nodiscard]] bool may_copy(const Progress& progress) const;
  void on_busy(const SendWQE& wqe, u64 index, Time now);
  void pass_by(SendQueue& queue, u64 index);
  void collect(PeerCopy& copy, SendQueue& queue, u64 first, Where where) const;
  [[nodiscard]] u32 on_copied(const PeerCopyCounts& copy, EngineCounters& counters);
  [[nodiscard]] bool is_late(const SendWQE& wqe) const {
    return lane_ != nullptr && LateCopy::is_for(memory_, qp_.pd, wqe);
  }
  [[nodiscard]] std::optional<u32> follow_late_copy(SendQueue& queue, u64 first,
                                                    EngineCounters& counters);
  void begin_late_copy(SendQueue& queue, u64 first);
  [[nodiscard]] bool is_paused(const SendWQE& wqe, u64 index) const {
    return is_late(wqe) ? late_.is_paused(index) : index < not_before_;
  }
  void distrust(const SendWQE& wqe, u64 index);
  void give_up_waiting();

  const QPAttributes& qp_;
  ProtectionTable& memory_;
  CopyLane* const lane_;
  PeerMemoryFinder* const finder_;
  std::shared_ptr<PeerMemory> peer_;
  bool is_open_ = false;
  u32 packet_bytes_ = 1;
  u64 next_look_ = 0;  // a request: the peer was not found before
  u32 looks_ = 0;
  u64 not_before_ = 0;  // a request of host memory: the peer has recently refused, or made us wait
  u32 refusals_ = 0;
  u32 passed_by_ = 0;  // requests in a row that found messages under way
  u64 last_passed_ = ~u64{0};
  u64 copied_bytes_ = 0;  // of the request that is next
  LateCopy late_;         // of the request that is next, and those behind it
  Duration pause_{};
  std::optional<Time> waits_until_;
  Time wakes_at_ = Time::never();
};

}  // namespace verbena::iwarp
