// LocalCopies: the WRITEs and READs that a requester copies to and from a peer on the same host
// instead of sending packets (transport/peer_memory.h). IBTA Vol 1, 10.8.3.3 (ordering rules).
//
// A WRITE or READ that finds nothing in flight, or only requests that the peer has executed
// already, is copied when its turn comes, so that the order of the queue is kept. It then counts as
// a local operation: done when started, without PSNs. If the peer does not allow the copy, the
// requester sends packets.
//
// A long READ is deferred until the program polls, or posts a request that must not pass the READ,
// so that SENDs behind it leave first. Programs that read from each other would otherwise take
// turns, since each asks the other only after its own copy. A deferred READ has started, but
// neither it nor what follows is reported. WRITEs of a program that soon polls
// (transport/poll_habit.h) are deferred likewise, to be copied together. IBTA 10.8.3.3 lets a
// request without a fence pass a READ.
//
// Between GPUs' memories of both ends a copy ends late (transport/late_copy.h). Nothing starts
// before it has ended: is_copying(), follow().
//
// Deferred operations that the peer then refuses become packets when all that has passed them is
// acknowledged. The owner sees to that: is_refused(), restart().
#pragma once

#include <algorithm>
#include <memory>
#include <optional>

#include "transport/engine.h"
#include "transport/late_copy.h"
#include "transport/rc/limits.h"
#include "transport/rc/send_window.h"

namespace verbena {

// The requests in flight, as they limit a copy.
enum class InFlight : u8 {
  kNothing,
  kAcknowledgements,  // only ACKs are missing, and they have been asked for
  kWork,
};

class LocalCopies {
 public:
  LocalCopies(const EngineParts& parts, const RCLimits& limits, EngineCounters& counters);

  void reset();
  void find_peer();  // RTS
  // The QP enters Error: returns the first WQE that is not done although it has started, or
  // nullopt.
  [[nodiscard]] std::optional<u64> give_up();

  // --- the WQE `fresh`
  [[nodiscard]] bool has_peer() const { return peer_ != nullptr; }  // on this host
  // Returns true if the WQE would rather wait for a copy than become packets: it is long, or a
  // READ, whose response takes no less time, or packets would follow packets forever.
  [[nodiscard]] bool prefers_copy(const SendWindow& window, const SendWQE& wqe) const;
  // Returns true if a copy is possible when ACKs arrive, and worth waiting for them.
  [[nodiscard]] bool should_wait(const SendWindow& window, const SendWQE& wqe,
                                 InFlight in_flight) const {
    return prefers_copy(window, wqe) && !is_executed(window, in_flight);
  }
  enum class Taken : u8 {
    kNothing,
    kWork,   // some WQEs were copied or deferred. They have started
    kTurn,   // the same, and other QPs have their turn: rests_from()
    kBegun,  // a copy that ends late: is_copying()
  };
  // Precondition: the WQE `fresh` may start. `end`: of the WQEs that may be copied.
  [[nodiscard]] Taken take(SendWindow& window, u64 end, InFlight in_flight, Time now);
  // A copy that ends late has begun. It is of the WQEs from `fresh` on, which have not started.
  [[nodiscard]] bool is_copying() const { return late_ != nullptr && late_->has_begun(); }
  // Returns true if that copy has ended: its WQEs have started, or will be packets.
  [[nodiscard]] bool follow(SendWindow& window);
  // Its QP fails. What has begun still takes effect.
  void forget_late() {
    if (late_ != nullptr) late_->forget();
  }
  // The requester pauses for other QPs, since rests_from().
  [[nodiscard]] bool is_resting() const { return rests_from_ != Time::never(); }
  [[nodiscard]] Time rests_from() const { return rests_from_; }
  void end_rest() { rests_from_ = Time::never(); }
  // Something was copied since reset().
  [[nodiscard]] bool has_copied() const { return has_copied_; }

  // --- deferred operations
  [[nodiscard]] bool has_deferred() const { return deferred_.has_value(); }
  [[nodiscard]] bool is_waiting() const { return deferred_ && !deferred_->refused; }
  [[nodiscard]] bool is_refused() const { return deferred_ && deferred_->refused; }
  [[nodiscard]] Time deferred_until() const { return deferred_->until; }  // if is_waiting()
  // Returns the end of the WQEs that are done and may be reported.
  [[nodiscard]] u64 end_of_done(const SendWindow& window) const {
    return deferred_ ? std::min(window.done(), deferred_->first) : window.done();
  }
  // Returns true if the deferred operations must be copied before this WQE may start.
  [[nodiscard]] bool must_precede(const SendWQE& wqe, InFlight in_flight) const {
    return deferred_ && !may_follow_deferred(wqe, in_flight);
  }
  // Copies as much as a turn allows. Precondition: is_waiting().
  void end_deferral(SendWindow& window, PollHabit::End end, Time now);
  // Copies all. The same precondition.
  void copy_all(SendWindow& window);
  // The window starts again with the refused operations. Precondition: is_refused(), and
  // window.is_acknowledged(), so that the order of PSNs is the queue's.
  void restart(SendWindow& window);
  // Returns true if the WQE `fresh` is done already: it had passed operations that were refused.
  [[nodiscard]] bool has_passed(const SendWindow& window, const SendWQE& wqe) const {
    return window.fresh() < passed_until_ && wqe.wr.op != SendOp::kRDMARead;
  }
  // Returns true if nothing rests, is deferred or has passed anything.
  [[nodiscard]] bool is_quiet(const SendWindow& window) const {
    return !is_resting() && !deferred_ && window.fresh() >= passed_until_;
  }

 private:
  struct Deferred {  // long READs, or WRITEs
    u64 first;       // the oldest; from it to `fresh` there are only such, and those that passed it
    Time until;      // the time at which they are copied
    u64 bytes = 0;
    SendOp op;
    bool refused = false;  // by the peer: they will be packets
  };

  [[nodiscard]] bool fits(const SendWQE& wqe) const;
  [[nodiscard]] bool is_paused(const SendWQE& wqe, u64 index) const;
  [[nodiscard]] bool is_executed(const SendWindow& window, InFlight in_flight) const;
  [[nodiscard]] Taken copy_fresh(SendWindow& window, u64 end, Time now);
  [[nodiscard]] bool is_late(const SendWQE& wqe) const;
  [[nodiscard]] Taken begin_late(SendWindow& window, u64 end);
  void collect(PeerCopy& copy, SendWindow& window, u64 first, u64 end,
               Where where = Where::kHere) const;
  void finish(const PeerCopyCounts& copy, SendWindow& window);
  void note_copied(const PeerCopyCounts& copy);
  void distrust(u64 index);
  [[nodiscard]] bool may_be_deferred(const SendWQE& wqe, InFlight in_flight, bool is_alone) const;
  [[nodiscard]] bool may_follow_deferred(const SendWQE& wqe, InFlight in_flight) const;
  [[nodiscard]] bool take_deferral(SendWindow& window, InFlight in_flight, Time now);
  void defer(SendWindow& window, Time now);
  [[nodiscard]] bool fills_a_call(const SendWindow& window) const;
  void copy_deferred(SendWindow& window, Time now);
  void skip_passed(SendWindow& window);

  const QPAttributes& qp_;
  const ProtectionTable& memory_;
  const RCLimits& limits_;
  EngineCounters& counters_;
  PeerMemoryFinder* const peers_;
  PollHabit* const habit_;
  CopyLane* const lane_;  // of copies that end late, or nullptr
  std::shared_ptr<PeerMemory> peer_;
  u64 no_copy_before_ = 0;  // a WQE of host memory: the peer has recently refused one
  u32 refusals_ = 0;        // in a row
  u32 passed_by_ = 0;       // in a row: sent as packets since others were in flight
  u32 copied_bytes_ = 0;    // of the WQE `fresh`, or the first deferred one
  bool has_copied_ = false;
  std::unique_ptr<LateCopy> late_;  // made with the first: most QPs have none
  Time rests_from_ = Time::never();
  std::optional<Deferred> deferred_;
  u64 passed_until_ =
      0;  // requests before it that are no READs are done: they passed a refused one
};

}  // namespace verbena
