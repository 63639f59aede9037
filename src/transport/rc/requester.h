// The requester half of one RC QP: WQEs in, request packets out; responses in, CQEs out. IBTA Vol
// 1, 9.7.2 (PSNs), 9.7.3 (requests), 9.7.5.2, 9.7.6 (retry), 9.7.7.2 (credits). Sans-IO, by the
// contract of transport/engine.h.
//
// Its parts know nothing of each other but the SendWindow, and never call the requester. It tells
// each part what has happened:
//   SendWindow      the send queue, the PSNs, and how far both are sent and acknowledged
//   FlightLimit     how many packets may be in flight
//   PeerLimits      the messages and READs that the peer has room for
//   AckRequests     which packets ask for an ACK
//   RequestBuilder  the packets
//   LocalCopies     WRITEs and READs of a peer on this host that need no packets
//   Recovery        retries, and the times of timeouts and probes
//   Completer       CQEs, errors, events
#pragma once

#include <optional>

#include "transport/datagram_engine.h"
#include "transport/rc/ack_requests.h"
#include "transport/rc/completer.h"
#include "transport/rc/flight_limit.h"
#include "transport/rc/local_copies.h"
#include "transport/rc/peer_limits.h"
#include "transport/rc/recovery.h"
#include "transport/rc/request_builder.h"
#include "transport/rc/send_window.h"

namespace verbena {

class RCRequester {
 public:
  // `fault`: receives the error that ends the QP.
  RCRequester(const EngineParts& parts, const RCLimits& limits, EngineCounters& counters,
              RequesterFault& fault);

  [[nodiscard]] PostError post(const SendWR& wr, Time now);
  void take_back(u32 count) { window_.queue().take_back(count); }  // just posted
  void free_sends(u32 count) { window_.queue().free_entries(count); }
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
    return window_.is_at_end() && !recovery_.is_probe_due() && !local_.is_refused();
  }
  [[nodiscard]] bool poll_packet(Time now, Trains trains, TxPacket& out);
  [[nodiscard]] bool poll_cqe(CQE& out) {
    return completer_.poll_cqe(window_, local_.end_of_done(window_), out);
  }
  [[nodiscard]] std::optional<EngineEvent> poll_event() {
    return completer_.poll_event(local_.end_of_done(window_) == window_.fresh() &&
                                 !local_.is_copying());
  }
  [[nodiscard]] Time next_timer() const;
  // Returns false if poll_cqe() would return nothing.
  [[nodiscard]] bool may_complete() const { return completer_.may_complete(window_); }
  // Returns true while long operations are deferred, for which there is a timer.
  [[nodiscard]] bool has_deferred() const { return local_.has_deferred(); }
  // Returns false if poll_event() would return nothing.
  [[nodiscard]] bool may_raise() const { return completer_.may_raise(); }
  [[nodiscard]] bool is_draining() const { return completer_.is_draining(); }

 private:
  enum class Loss : u8 { kTimeout, kSequenceError, kImpliedNAK };
  // The WQE at the cursor has packets to send; is done or started, so that the next has its turn;
  // or waits.
  enum class Step : u8 { kPacket, kNext, kWait };
  struct Allowance {  // of one poll
    u32 in_flight;    // packets
    Trains trains;
  };

  // requester.cc: states, sending
  void reset();
  void begin(Time now);
  void enter(QPState from, Time now);
  bool may_start(const SendWQE& wqe) const;
  InFlight in_flight() const;
  u32 psns_of(const SendWQE& wqe) const;
  Step step(Time now);
  Step start(Time now);
  Step start_copies(const SendWQE& wqe, Time now);
  Step start_packets(const SendWQE& wqe);
  void execute_local(const SendWQE& wqe);
  Allowance allowance(Trains trains, Time now);
  RequestBuilder::Part next_part(const SendWQE& wqe, const Allowance& may) const;
  Step send(const Allowance& may, Time now, TxPacket& out);
  Step wait(Time now);
  bool send_probe(TxPacket& out);
  void ask_for_ack(const SendWQE& wqe, u32 packets, const Allowance& may, Time now, BTH& bth);
  bool must_ask(const SendWQE& wqe, const Allowance& may);
  bool more_follows();
  Urgency urgency_of(const SendWQE& wqe, const TxPacket& packet, u32 psns);
  void note_sent(const SendWQE& wqe, u32 psns, bool is_answered, Time now);
  void note_new(u32 psns, bool is_answered, Time now);
  void note_resent(u32 psns, Time now);
  void note_waiting() { flight_.note_waiting(takes_responses() && window_.waits_for_response()); }
  void after_copies();
  void end_deferral(PollHabit::End end, Time now);
  void follow_late_copy();
  void restart_refused();

  // common_case.cc
  bool may_send_at_once(const SendWQE& wqe, Time now);
  void sent_at_once(const SendWQE& wqe, Time now);
  bool acknowledges_in_order(const Acknowledgement& acknowledgement, Time now);

  // responses.cc: responses, time, recovery
  bool takes_responses() const {
    return !completer_.has_failed() && (qp_.state == QPState::kRTS || qp_.state == QPState::kSQD);
  }
  void take_response(const PacketView& packet, Time now);
  void take_acknowledgement(const Acknowledgement& acknowledgement, Time now);
  void on_acknowledge(PSN psn, const AETH& aeth, Time now);
  void on_nak(const AETH& aeth, Time now);
  void on_rnr_nak(const AETH& aeth, Time now);
  SendWQE* expected_response(PSN psn, Time now);
  void on_read_response(const PacketView& packet, Time now);
  void on_confirmation(const SendWQE& wqe, const PacketView& packet, Time now);
  void on_atomic_acknowledge(const PacketView& packet, Time now);
  bool store(const SendWQE& wqe, u64 offset, Bytes data);
  bool acknowledge_before(PSN end, Time now);
  void acknowledge_response(const SendWQE& wqe, PSN psn, Time now);
  void acknowledge_answered(const SendWQE& oldest, Time now);
  void note_news(Time now);
  void retire(const SendWQE& oldest, u32 psns, Time now);
  void complete_local();
  void stop_at(u64 index, WQEStatus status);
  void fail(WQEStatus status);
  void implied_nak(Time now);
  void go_back(Loss why, Time now);
  void resend_unacknowledged();
  void note_moved_back();
  void break_silence();
  Time next_wait() const;

  // selective_repeat.cc
  void on_sack(const PacketView& packet, Time now);
  bool acknowledge_executed(PSN end, Time now);
  void advance(Time now);
  SendWQE* unanswered(PSN psn);
  void take_answer(const SendWQE& wqe, PSN psn, Time now);
  void look_again(Time now);

  u32 mtu() const { return limits_.packet_size(qp_.path_mtu); }

  const QPAttributes& qp_;
  ProtectionTable& memory_;
  const RCLimits limits_;
  EngineCounters& counters_;
  CopyLane* const copies_;

  SendWindow window_;
  FlightLimit flight_;
  PeerLimits peer_;
  AckRequests ack_requests_;
  const RequestBuilder builder_;
  LocalCopies local_;
  Recovery recovery_;
  Completer completer_;
  u32 unawaited_ = 0;  // packets in a row that complete nothing
};

}  // namespace verbena
