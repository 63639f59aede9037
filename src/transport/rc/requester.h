// The requester half of one RC QP: WQEs in, request packets out; responses in, CQEs out. IBTA Vol
// 1, 9.7.2 (PSNs), 9.7.3 (requests), 9.7.5.2, 9.7.6 (retry), 9.7.7.2 (credits). Sans-IO, by the
// contract of transport/engine.h.
//
// Three indexes divide the send queue, begin <= done <= fresh <= end:
//   [begin, done)  acknowledged; poll_cqe() reports and removes them
//   [done, fresh)  started: their PSNs are assigned
//   [fresh, end)   not started
// Three marks divide the PSNs, unacked <= cursor <= frontier:
//   unacked   the oldest not acknowledged, always inside the WQE `done` (or == frontier)
//   cursor    the next to send; moved back to `unacked` to retransmit: all packets (go-back-N),
//             or, with a scoreboard, only lost ones (selective repeat)
//   frontier  the next never sent
// A READ is requested in pieces of chunk_packets_ PSNs, aligned to its first PSN, so that its
// responses fit the window and a repeated request lies inside the original one.
//
// A peer on the same host may need no packets (transport/peer_memory.h). A WRITE or READ that finds
// nothing in flight, or only requests that the peer has executed already, is copied when its turn
// comes. It then counts as a local operation: done when started, without PSNs. If the peer does not
// allow the copy, the requester sends packets.
//
// A long READ is deferred until the program polls, or posts a request that must not pass the READ,
// so that SENDs behind it leave first. Programs that read from each other would otherwise take
// turns, since each asks the other only after its own copy. A deferred READ has started, but
// neither it nor what follows is reported. WRITEs of a program that soon polls
// (transport/poll_habit.h) are deferred likewise, to be copied together. IBTA 10.8.3.3 lets a
// request without a fence pass a READ.
//
// Between GPUs' memories of both ends the copy ends late (transport/late_copy.h). Nothing starts
// before it has ended.
//
// In silence the requester sends the oldest packet again as a probe, without moving the cursor: a
// responder answers it, new or duplicate. If nothing follows its answer, the requester repeats the
// rest too. This consumes no retries.
#pragma once

#include <memory>
#include <optional>

#include "transport/datagram_engine.h"
#include "transport/late_copy.h"
#include "transport/rc/ack_signals.h"
#include "transport/rc/limits.h"
#include "transport/rc/loss_window.h"
#include "transport/rc/probe_timer.h"
#include "transport/rc/scoreboard.h"

namespace verbena {

class RCRequester {
 public:
  // `fault`: receives the error that ends the QP.
  RCRequester(const EngineParts& parts, const RCLimits& limits, EngineCounters& counters,
              RequesterFault& fault);

  [[nodiscard]] PostError post(const SendWR& wr, Time now);
  void take_back(u32 count) { queue_.take_back(count); }  // just posted
  void free_sends(u32 count) { queue_.free_entries(count); }
  // Sends the request that was posted last to a peer of this host without waiting for its turn, as
  // if it had been polled out. Returns the number of bytes, without an ICRC, or nullopt if it must
  // wait for its turn.
  [[nodiscard]] std::optional<u32> send_at_once(LocalPackets& way, Time now);
  void on_state(QPState from, Time now);
  // `path`: RxContext's.
  void on_response(const PacketView& packet, const PathTelemetry* path, Time now);
  void on_acknowledgement(const Acknowledgement& acknowledgement, Time now);
  void on_timer(Time now);
  [[nodiscard]] bool run_deferred(Time now);
  // The result of a READ or atomic did not reach its memory.
  void on_copy_failed();
  [[nodiscard]] bool is_idle() const {
    return cursor_index_ == queue_.end_index() && !probe_due_ && !(deferred_ && deferred_->refused);
  }
  [[nodiscard]] bool poll_packet(Time now, Trains trains, TxPacket& out);
  [[nodiscard]] bool poll_cqe(CQE& out);
  [[nodiscard]] std::optional<EngineEvent> poll_event();
  [[nodiscard]] Time next_timer() const;
  // Returns false if poll_cqe() would return nothing.
  [[nodiscard]] bool may_complete() const {
    return queue_.begin_index() < done_ || failed_ ||
           (qp_.state == QPState::kError && !queue_.empty());
  }
  // Returns true while long operations are deferred, for which there is a timer.
  [[nodiscard]] bool has_deferred() const { return deferred_.has_value(); }
  // Returns false if poll_event() would return nothing.
  [[nodiscard]] bool may_raise() const { return fatal_pending_ || is_draining(); }
  [[nodiscard]] bool is_draining() const { return qp_.state == QPState::kSQD && !drain_reported_; }

 private:
  enum class Recovery : u8 { kTimeout, kSequenceError, kImpliedNAK };

  // requester.cc: sending
  void reset();
  void enter(QPState from, Time now);
  bool may_start(const SendWQE& wqe) const;
  bool has_credit(const SendWQE& wqe) const;
  bool start(SendWQE& wqe);
  void assign_psns(SendWQE& wqe);
  void start_local(SendWQE& wqe);
  u32 build(SendWQE& wqe, TxPacket& out);
  u32 build_read(const SendWQE& wqe, TxPacket& out);
  u32 build_atomic(const SendWQE& wqe, TxPacket& out);
  u32 build_flush(const SendWQE& wqe, TxPacket& out);
  u32 build_atomic_write(const SendWQE& wqe, TxPacket& out);
  u32 build_message(SendWQE& wqe, TxPacket& out);
  MemoryFault load_payload(const SendWQE& wqe, u64 offset, u32 length, PayloadList& out) const;
  bool may_build(MemoryFault payload);
  u32 train_length(const SendWQE& wqe, u32 packet) const;
  bool load_train(const SendWQE& wqe, u64 offset, u32 packets, PayloadList& out) const;
  Trains may_build_trains(Trains trains, Time now) const;
  bool take_rd_atomic();
  bool build_probe(TxPacket& out);
  bool more_follows();
  bool wants_ack(const SendWQE& wqe, bool last);
  void note_ack_request(BTH& bth, Time now);
  Urgency urgency_of(const SendWQE& wqe, const TxPacket& packet, u32 psns);

  // common_case.cc
  bool may_send_at_once(const SendWQE& wqe, Time now);
  void sent_at_once(SendWQE& wqe, Time now);
  bool acknowledges_in_order(const Acknowledgement& acknowledgement, Time now);

  // short_cut.cc: without packets
  bool fits_short_cut(const SendWQE& wqe) const;
  bool prefers_short_cut(const SendWQE& wqe) const;
  bool lets_short_cut_pass() const;
  bool take_short_cut(Time now);
  void collect(PeerCopy& copy, u64 first, u64 end, Where where = Where::kHere);
  void on_refused(u64 index);
  void count(const PeerCopyCounts& copy);
  void finish(const PeerCopyCounts& copy);
  bool is_late(const SendWQE& wqe) const;
  bool begin_late_copy();
  void follow_late_copy();
  void skip_fresh();
  bool may_be_deferred(const SendWQE& wqe) const;
  bool may_follow_deferred(const SendWQE& wqe) const;
  bool take_deferral(const SendWQE& wqe, Time now);
  void defer(const SendWQE& wqe, Time now);
  void end_deferral(PollHabit::End end, Time now);
  bool fills_a_call() const;
  void copy_deferred(Time now);
  void skip_passed();
  void refuse_deferred();
  void restart_refused();
  bool has_passed(const SendWQE& wqe) const;

  // selective_repeat.cc: repeats only lost packets
  void on_sack(const PacketView& packet, Time now);
  bool acknowledge_executed(PSN end, Time now);
  void advance(Time now);
  SendWQE* unanswered(PSN psn);
  void take_answer(const SendWQE& wqe, PSN psn, Time now);
  void look_again(Time now);
  bool skip_arrived();
  u32 arrived(const SendWQE& wqe) const;
  u32 unanswered_psns(u32 most) const;
  void note_resent(u32 psns, Time now);
  void note_lost(u32 psns, Time now);

  void sent(const SendWQE& wqe, u32 psns, bool answered, Time now);
  u32 window_packets(Time now);
  void note_share() { share_.note(takes_responses() && waits_for_response()); }
  // PSNs of a READ up to the end of the request for it.
  u32 psns_of_piece(const SendWQE& wqe, PSN psn) const;
  bool resends() const { return cursor_ != frontier_; }
  u32 in_flight() const { return unacked_.distance_to(cursor_); }
  u32 mtu() const { return limits_.packet_size(qp_.path_mtu); }

  // completer.cc: responses, time, completions
  void take_response(const PacketView& packet, Time now);
  void take_acknowledgement(const Acknowledgement& acknowledgement, Time now);
  bool takes_responses() const {
    return !failed_ && (qp_.state == QPState::kRTS || qp_.state == QPState::kSQD);
  }
  bool is_expected(PSN psn) const {
    return unacked_.distance_to(psn) < unacked_.distance_to(frontier_);
  }
  void tell_of_acks(PSN before, const PathTelemetry* path, Time now);
  void on_acknowledge(PSN psn, const AETH& aeth, Time now);
  void on_read_response(const PacketView& packet, Time now);
  void on_confirmation(const SendWQE& wqe, const PacketView& packet, Time now);
  void on_atomic_acknowledge(const PacketView& packet, Time now);
  void on_nak(const AETH& aeth, Time now);
  void on_rnr_nak(const AETH& aeth, Time now);
  bool acknowledge_before(PSN end, Time now);
  SendWQE* expected_response(PSN psn, Time now);
  void acknowledge_response(const SendWQE& wqe, PSN psn, Time now);
  void free_answered(const SendWQE& wqe, Time now);
  void progress(u32 psns, Time now);
  void note_news(Time now);
  void retire(const SendWQE& wqe, u32 psns, Time now);
  void skip_local_operations();
  Time next_wait() const;
  void note_credits(const AETH& aeth);
  void implied_nak(Time now);
  void resend_unacknowledged();
  void move_back();
  void go_back(Recovery why, Time now);
  void note_loss();
  void break_silence();
  void note_probe_answer();
  void fail(WQEStatus status);
  void note_fault(const SendWQE& wqe, WQEStatus status);
  void stop_at(u64 index, WQEStatus status);
  Time ack_timeout_at() const;
  bool waits_for_response() const { return unacked_ != cursor_; }

  const QPAttributes& qp_;
  ProtectionTable& memory_;
  const RCLimits limits_;
  EngineCounters& counters_;
  RequesterFault& fault_;
  CopyLane* const copies_;
  SendQueue queue_;

  u64 done_ = 0, fresh_ = 0;
  u64 cursor_index_ = 0;  // the WQE that contains `cursor_`, or `fresh_`
  PSN unacked_, cursor_, frontier_;
  MSN next_ssn_{1};  // of the next message to start. IBTA 9.7.7.2.1
  u32 chunk_packets_ = 1;
  u32 rd_atomic_ = 0;  // READ pieces, atomics, FLUSHes and ATOMIC WRITEs in flight
  u32 since_ack_request_ = 0;
  u32 unawaited_ = 0;  // packets in a row that complete nothing
  Time ack_requested_at_;
  const Duration ack_request_period_;
  LossWindow window_;
  WindowShare share_;
  const std::unique_ptr<Scoreboard> scoreboard_;  // nullptr: go-back-N
  PSN losses_until_;                              // the losses before it count as one event
  u32 losses_ = 0;                                // number of packets in that event
  u32 may_be_in_flight_ = 1;                      // packets, at the last request to send
  Trains trains_ = Trains::kNo;                   // likewise
  std::optional<AckSignals> ack_signals_;         // nullopt: no congestion control needs them

  std::optional<MSN> credit_limit_;    // LSN; nullopt: the peer has no end-to-end flow control
  std::optional<PSN> implied_nak_at_;  // one implied NAK for one gap
  u8 retries_left_ = 0, rnr_retries_left_ = 0;
  Time timer_base_;  // the last progress, or the first packet after idleness
  std::optional<Time> rnr_until_;

  struct Probe {
    PSN end,
        in_flight_end;  // the ends of the probe's request, and of all packets in flight with it
  };
  ProbeTimer probe_timer_;
  std::optional<Probe> probe_;  // sent, and not answered
  bool probe_due_ = false;

  PeerMemoryFinder* const peers_;
  PollHabit* const habit_;
  std::shared_ptr<PeerMemory> peer_;
  u64 no_short_cut_before_ = 0;  // a WQE: the peer has recently refused a copy
  u32 refusals_ = 0,
      passed_by_ = 0;        // in a row: refused; sent as packets since others were in flight
  u32 short_cut_bytes_ = 0;  // bytes of the WQE `fresh_` that are copied already
  LateCopy late_;            // of WQEs from `fresh_` on
  std::optional<Time> rests_from_;  // much was copied: other QPs have a turn first

  struct Deferred {  // deferred long READs, or WRITEs
    SendOp op;
    u64 first;   // the oldest; from it to `fresh_` there are only such, and those that passed it
    Time until;  // the time at which they are copied
    u64 bytes = 0;
    bool refused = false;  // by the peer: they will be packets
  };
  std::optional<Deferred> deferred_;
  u64 passed_until_ =
      0;  // requests before it that are no READs are done: they passed a refused READ

  std::optional<u64> stopped_at_;  // a WQE that failed locally; it completes when its turn comes
  WQEStatus stopped_status_ = WQEStatus::kSuccess;
  std::optional<u64> failed_;  // the WQE that ended the QP
  WQEStatus failed_status_ = WQEStatus::kSuccess;
  bool fatal_pending_ = false, drain_reported_ = false;
  bool answered_ = false;  // something has been acknowledged
  Time entered_error_;
};

}  // namespace verbena
