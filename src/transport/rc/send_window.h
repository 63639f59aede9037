// SendWindow: the send queue of one requester, and how far the requester has come in it. IBTA Vol
// 1, 9.7.2 (PSNs), 9.7.5 (responses).
//
// Three indexes divide the send queue, begin <= done <= fresh <= end:
//   [begin, done)  acknowledged
//   [done, fresh)  started: their PSNs are assigned. Local operations, and what was copied to a
//   peer
//                  of this host, take none; they count as acknowledged when all before them are
//   [fresh, end)   not started
// Three marks divide the PSNs, unacked <= cursor <= frontier:
//   unacked   the oldest not acknowledged, always inside the WQE `done` (or == frontier)
//   cursor    the next to send; moved back to `unacked` to retransmit: all packets (go-back-N),
//             or, with a scoreboard, only lost ones (selective repeat)
//   frontier  the next never sent
// A READ is requested in pieces of `chunk` PSNs, aligned to its first PSN, so that its responses
// fit the window and a repeated request lies inside the original one.
//
// With a scoreboard, the cursor moves back to the oldest packet when the peer reports something
// new. From there it passes over all packets that have arrived or may still arrive, to the next
// lost one, or to the frontier.
#pragma once

#include <algorithm>
#include <memory>

#include "transport/rc/limits.h"
#include "transport/rc/scoreboard.h"
#include "transport/send_queue.h"

namespace verbena {

class SendWindow {
 public:
  SendWindow(const SendQueueLimits& queue, const RCLimits& limits);

  void clear();  // forgets all WQEs
  // `first`: the first PSN. `chunk`: PSNs of a piece of a READ.
  void begin(PSN first, u32 chunk);

  // --- where it stands
  [[nodiscard]] SendQueue& queue() { return queue_; }
  [[nodiscard]] const SendQueue& queue() const { return queue_; }
  [[nodiscard]] u64 done() const { return done_; }
  [[nodiscard]] u64 fresh() const { return fresh_; }
  [[nodiscard]] u64 index() const { return index_; }  // the WQE of the cursor, or `fresh`
  [[nodiscard]] PSN unacked() const { return unacked_; }
  [[nodiscard]] PSN cursor() const { return cursor_; }
  [[nodiscard]] PSN frontier() const { return frontier_; }
  [[nodiscard]] SendWQE& oldest() { return queue_.at(done_); }
  [[nodiscard]] SendWQE& current() { return queue_.at(index_); }
  [[nodiscard]] bool is_at_end() const { return index_ == queue_.end_index(); }
  [[nodiscard]] bool is_at_fresh() const { return index_ == fresh_; }
  [[nodiscard]] bool waits_for_response() const { return unacked_ != cursor_; }
  [[nodiscard]] bool is_acknowledged() const { return unacked_ == frontier_; }  // all ever sent
  [[nodiscard]] bool resends() const { return cursor_ != frontier_; }
  [[nodiscard]] u32 in_flight() const { return unacked_.distance_to(cursor_); }
  [[nodiscard]] bool is_expected(PSN psn) const {
    return unacked_.distance_to(psn) < unacked_.distance_to(frontier_);
  }
  // PSNs of the WQE from `psn` on.
  [[nodiscard]] static u32 left_of(const SendWQE& wqe, PSN psn) {
    return psn.distance_to(wqe.last_psn) + 1;
  }
  // PSNs of a READ up to the end of the request for it; 1 for other operations.
  [[nodiscard]] u32 psns_of_piece(const SendWQE& wqe, PSN psn) const;
  // PSNs that a request from `psn` on must cover. If the peer has executed the READ, the missing
  // part is enough. A READ that the peer may never have received must be sent whole: its length
  // gives its PSNs.
  [[nodiscard]] u32 psns_to_request(const SendWQE& wqe, PSN psn) const;

  // --- progress. Precondition of start() and skip(): the cursor is at a WQE that is fresh
  void start(u32 packets);         // which takes so many PSNs, at least 1
  void skip();                     // which takes none
  void pass_local() { ++index_; }  // the cursor is at a started WQE without PSNs
  // Both, for one packet that is sent at once. Precondition: the cursor is at the frontier.
  void send_single();
  // The cursor passes packets of the WQE that it is in: they are sent, or have arrived.
  void advance(const SendWQE& current, u32 psns);
  struct Acknowledged {
    bool ends_wqe;
    bool passes_cursor;  // they were to be repeated: the cursor has moved with them
  };
  // The oldest PSNs, all inside one WQE.
  Acknowledged acknowledge(const SendWQE& oldest, u32 psns);
  // All PSNs before `end`, which are those of the WQEs before `index`. Without a scoreboard.
  void acknowledge_wqes(PSN end, u64 index);
  // Counts WQEs without PSNs as acknowledged if all before them are.
  void complete_local();
  void move_back();
  // Starts again with the WQE `index`. Precondition: is_acknowledged().
  void restart_at(u64 index) { done_ = fresh_ = index_ = index; }
  // The WQEs from `index` on are not done: they will be flushed.
  void withdraw_done(u64 index) { done_ = std::min(done_, index); }

  // --- selective repeat
  [[nodiscard]] Scoreboard* scoreboard() { return scoreboard_.get(); }  // nullptr: go-back-N
  [[nodiscard]] const Scoreboard* scoreboard() const { return scoreboard_.get(); }
  // Returns the WQE in flight that `psn` belongs to. Precondition: is_expected(psn).
  [[nodiscard]] SendWQE& find(PSN psn);
  // Moves the cursor to the next lost packet, or to the frontier. Returns false if it is there.
  [[nodiscard]] bool skip_arrived();
  // Returns true if the packet at the cursor is lost. Precondition: it was sent.
  [[nodiscard]] bool is_lost() { return arrived(current()) == 0; }

 private:
  [[nodiscard]] u32 arrived(const SendWQE& wqe) const;

  SendQueue queue_;
  u64 done_ = 0, fresh_ = 0, index_ = 0;
  PSN unacked_, cursor_, frontier_;
  u32 chunk_ = 1;
  const std::unique_ptr<Scoreboard> scoreboard_;
};

}  // namespace verbena
